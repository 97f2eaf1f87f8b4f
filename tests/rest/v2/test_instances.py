"""Instances and the memory of their responses, without brokers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.client.core.fetching import ConsumerRecord
from barnabas.client.core.topology import TopicPartition
from barnabas.records.batch import TimestampType
from barnabas.rest.formats.embedded import Formats
from barnabas.rest.formats.names import DataFormat
from barnabas.rest.formats.source import NoRegistry
from barnabas.rest.v2.consumers.budget import FIRST_SHARE_BYTES, Budget, SharedResponse
from barnabas.rest.v2.consumers.instance import Instance, Wanted
from barnabas.rest.v2.consumers.instance_settings import InstanceSettings
from barnabas.rest.v2.consumers.instances import ConsumerSettings, Instances
from barnabas.services.errors import ApiError

WHERE = TopicPartition("t", 0)


class PlainConsumer:
    """A consumer of a topic whose records are all of the same size."""

    def __init__(self, values: list[bytes]) -> None:
        self.values = values
        self.position = 0
        self.sizes: list[int] = []
        self.is_closed = False
        self.has_subscription = True
        self.assignment = (WHERE,)

    @property
    def has_more(self) -> bool:
        return self.position < len(self.values)

    async def poll(self, timeout_ms: float, *, bytes_max: int, bytes_min: int | None) -> list[ConsumerRecord]:
        self.sizes.append(bytes_max)
        found = []
        while self.has_more and (not found or bytes_max > 0):
            value = self.values[self.position]
            bytes_max -= len(value)
            found.append(
                ConsumerRecord("t", 0, self.position, 0, 0, TimestampType.CREATE_TIME, None, value, ())
            )
            self.position += 1
        return found

    def seek(self, where: TopicPartition, offset: int) -> None:
        self.position = offset

    async def close(self) -> None:
        self.is_closed = True


def instance(values: list[bytes], owner: object = "me") -> tuple[Instance, PlainConsumer]:
    consumer = PlainConsumer(values)
    settings = InstanceSettings(format=DataFormat.JSON)
    return Instance(owner, consumer, settings), consumer  # type: ignore[arg-type]


def read(values: list[bytes], budget: Budget, bytes_max: int = 10**9) -> tuple[int, PlainConsumer]:
    one, consumer = instance(values)

    async def run() -> list[str]:
        share = budget.share()
        return await one.read(Formats(NoRegistry()), Wanted(1000, bytes_max, None), share)

    return len(asyncio.run(run())), consumer


VALUES = [b'"' + b"x" * 998 + b'"'] * 2_000


def test_a_read_asks_for_more_memory_as_records_come() -> None:
    budget = Budget(10**9)
    count, consumer = read(VALUES, budget)
    assert count == len(VALUES)
    first = FIRST_SHARE_BYTES
    assert consumer.sizes == [first, first, 2 * first, 4 * first, 8 * first]
    assert budget.bytes_used == sum(consumer.sizes)


def test_a_read_ends_where_memory_ends_and_goes_on_later() -> None:
    budget = Budget(3 * FIRST_SHARE_BYTES)
    count, consumer = read(VALUES, budget)
    assert 0 < count < len(VALUES)
    assert consumer.position == count
    with pytest.raises(ApiError) as caught:
        read(VALUES, Budget(FIRST_SHARE_BYTES - 1))
    assert (caught.value.status, caught.value.code) == (429, 42901)


def test_an_error_behind_the_first_piece_loses_nothing() -> None:
    values = [*VALUES[:200], b"no JSON", *VALUES[:10]]
    count, consumer = read(values, Budget(10**9))
    assert count == 200
    assert consumer.position == 200
    one, _ = instance(values[200:])

    async def run() -> None:
        await one.read(Formats(NoRegistry()), Wanted(1000, 10**9, None), Budget(10**9).share())

    with pytest.raises(ApiError, match="offset 0 of t-0"):
        asyncio.run(run())


def test_a_read_that_is_cancelled_returns_its_records_to_the_next_one() -> None:
    one, consumer = instance(VALUES)

    class Stuck(Formats):
        async def prepare(self, *_: Any) -> Any:
            await asyncio.sleep(3600)

    object.__setattr__(one.settings, "format", DataFormat.AVRO)

    async def run() -> None:
        async with asyncio.timeout(0.01):
            await one.read(Stuck(NoRegistry()), Wanted(1000, 10**9, None), Budget(10**9).share())

    with pytest.raises(TimeoutError):
        asyncio.run(run())
    assert consumer.position == 0


def test_memory_is_released_when_the_response_is_sent_or_its_reader_is_gone() -> None:
    budget = Budget(1000)

    async def respond(fails: bool) -> None:
        share = budget.share()
        assert share.grow(100)
        share.settle(2)

        async def send(message: Any) -> None:
            assert budget.bytes_used == 2
            if fails:
                raise OSError("gone")

        async def receive() -> Any:
            raise AssertionError

        await SharedResponse(b"[]", "application/json", share)({"type": "http"}, receive, send)

    asyncio.run(respond(False))
    assert budget.bytes_used == 0
    with pytest.raises(OSError, match="gone"):
        asyncio.run(respond(True))
    assert budget.bytes_used == 0


def test_instances_belong_to_their_makers_and_are_counted() -> None:
    async def run() -> None:
        instances = Instances(ConsumerSettings(instances_max=3, instances_per_owner_max=2))
        (mine, consumer), (theirs, _) = instance([]), instance([], "you")
        instances.add("g", "a", mine)
        instances.add("g", "b", theirs)
        assert instances.find("g", "a", "me") is mine
        for owner in ("you", "nobody"):
            with pytest.raises(ApiError) as caught:
                instances.find("g", "a", owner)
            assert caught.value.code == 40403
        with pytest.raises(ApiError, match="already"):
            instances.add("g", "a", instance([], "you")[0])
        instances.add("g", "c", instance([])[0])
        with pytest.raises(ApiError, match="this proxy has 3"):
            instances.add("g", "d", instance([], "you")[0])
        await instances.remove("g", "b", "you")
        with pytest.raises(ApiError, match="2 consumer instances belong"):
            instances.add("g", "d", instance([])[0])
        await instances.remove("g", "a", "me")
        assert consumer.is_closed
        instances.add("g", "a", instance([])[0])
        await instances.close()
        assert len(instances) == 0

    asyncio.run(run())
