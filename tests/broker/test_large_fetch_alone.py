"""One fetch in pieces beside partitions that change: records that come meanwhile, its end at any moment."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.api.deferred import Deferred, Response
from barnabas.broker.fetch.encoded_fetch import EncodedTopics, encode_in_steps, encoder
from barnabas.broker.fetch.fetch_stats import FetchStats
from barnabas.broker.fetch.fetching import Fetching, Reading
from barnabas.broker.fetch.large_fetch import LargeFetch
from barnabas.broker.wire.outbox import CHUNK_BYTES, SLICES_AT_ONCE_MAX, small_enough
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.replication.fetch_sessions import NOT_SENT_YET, FetchSessions
from barnabas.runtime.pieces import Pieces, at_once
from barnabas.storage.segments.log_slice import LogSlice
from replication.test_fetch_sessions import fetch_request

from .fetches_in_pieces import in_pieces

__all__ = ["in_pieces"]

BY_NAME = 12
Data = FetchResponse.FetchableTopicResponse.PartitionData


class Watched:
    """A partition with some bytes to fetch."""

    def __init__(self) -> None:
        self.waiters: list[Any] = []
        self.bytes = 0

    def add(self) -> None:
        self.bytes += 1
        for waiter in list(self.waiters):
            waiter(self)

    def leave(self, waiter: Any) -> None:
        self.waiters.remove(waiter)


class FakeFetch(Fetching):
    """Reads watched partitions; `on_read` is called behind the first partition of each try."""

    __slots__ = ("count", "of_session", "on_read", "reads", "rooms", "watched")

    def __init__(self, session: Any, **fields: int) -> None:
        request = FetchRequest(**{"min_bytes": 1, **fields})
        loop = asyncio.get_running_loop()

        async def run_in_thread(job: Callable[[], None]) -> None:
            assert not self.reads
            job()

        broker = SimpleNamespace(
            threads=SimpleNamespace(reads=SimpleNamespace(run=run_in_thread)),
            loop=loop,
            pieces=Pieces(loop.time),
            fetch_bytes_max=1 << 20,
            fetch_stats=FetchStats(),
            unexpected=SimpleNamespace(note=lambda doing: None),
        )
        super().__init__(request, session, SimpleNamespace(broker=broker, version=BY_NAME))  # type: ignore[arg-type]
        self.on_read: Callable[[], None] = lambda: None
        self.reads = 0
        self.rooms: list[int] = []
        self.of_session: Any = None  # called when a partition of a follower's session has changed
        self.watched: list[Any] = []
        self.count = lambda partition, size: None

    def find_cold(self, to_read: Any, room: int, found: Any) -> int:
        """The second partition's records are cold; a thread must read them."""
        self.rooms.append(room)
        if len(self.rooms) == 2:
            found.append(SimpleNamespace(warm=lambda: self.rooms.append(-1)))
        return room - 1

    def read(self, to_read: Any, reading: Reading) -> None:
        for asked in to_read:
            reading.bytes_total += asked.attachment.bytes
            reading.results.append(
                (asked, Data(partition_index=asked.index, records=b"r" * asked.attachment.bytes))
            )
        reading.can_wait = True
        self.reads += 1
        if self.reads == 1:
            self.on_read()

    def watch_some(self, read: Any, more: Any) -> None:
        for asked in read:
            asked.attachment.waiters.append(more)
            self.watched.append(asked.attachment)

    def watch_session(self, more: Any) -> None:
        self.of_session = more

    def unwatch_session(self, more: Any) -> None:
        assert self.of_session == more
        self.of_session = None

    def pop_watched(self) -> Any:
        watched, self.watched = self.watched, []
        return watched


def alone(scenario: Callable[[FakeFetch, list[Watched]], Any], **fields: int) -> None:
    """Run a scenario with a fetch of four partitions in a session."""

    async def run() -> None:
        sessions = FetchSessions(10, random.Random(1))
        session = sessions.open(fetch_request(0, 0, {f"t-{index}": 0 for index in range(4)}), BY_NAME, 0)
        partitions = [Watched() for _ in session.partitions]
        for asked, partition in zip(session.partitions, partitions, strict=True):
            asked.attachment = partition
        fetching = FakeFetch(session, **{"max_wait_ms": 60_000, **fields})
        await asyncio.wait_for(scenario(fetching, partitions), 30)
        await asyncio.sleep(0.01)
        assert not any(partition.waiters for partition in partitions)
        assert fetching.broker.fetch_stats.waiting == [0, 0]

    asyncio.run(run())


async def response_to(deferred: Deferred) -> Response | None:
    future: asyncio.Future[Response | None] = asyncio.get_running_loop().create_future()
    deferred.then(future.set_result)
    return await future


def sizes(response: Any) -> list[int]:
    assert isinstance(response.responses, EncodedTopics)
    return [len(data.records or b"") for topic in response.responses for data in topic.partitions]


@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize("which", range(4))
def test_a_record_that_comes_while_the_others_are_read_is_sent(which: int) -> None:
    async def scenario(fetching: FakeFetch, partitions: list[Watched]) -> None:
        fetching.on_read = lambda: asyncio.get_running_loop().call_soon(partitions[which].add) and None
        response = await response_to(LargeFetch(fetching, BY_NAME).start())
        assert sizes(response) == [int(index == which) for index in range(4)]

    alone(scenario)


@pytest.mark.usefixtures("in_pieces")
def test_a_fetch_waits_again_if_there_is_not_enough() -> None:
    async def scenario(fetching: FakeFetch, partitions: list[Watched]) -> None:
        large = LargeFetch(fetching, BY_NAME)
        deferred = large.start()
        for number in range(3):
            while large._news is None:
                await asyncio.sleep(0)
            assert fetching.reads == 4 * (number + 1)
            partitions[number].add()
            while large._news is not None:
                await asyncio.sleep(0)
        assert sizes(await response_to(deferred)) == [1, 1, 1, 0]

    alone(scenario, min_bytes=3)


@pytest.mark.usefixtures("in_pieces")
def test_a_follower_s_session_wakes_its_fetch() -> None:
    async def scenario(fetching: FakeFetch, partitions: list[Watched]) -> None:
        large = LargeFetch(fetching, BY_NAME)
        deferred = large.start()
        while large._news is None:
            await asyncio.sleep(0)
        partitions[2].bytes = 1
        fetching.of_session()
        assert sizes(await response_to(deferred)) == [0, 0, 1, 0]
        assert fetching.of_session is None

    alone(scenario)


@pytest.mark.usefixtures("in_pieces")
def test_a_thread_first_reads_records_that_are_on_the_disk() -> None:
    async def scenario(fetching: FakeFetch, partitions: list[Watched]) -> None:
        await response_to(LargeFetch(fetching, BY_NAME).start())
        room = fetching.bytes_max
        assert fetching.rooms == [room, room - 1, room - 2, room - 3, -1]

    alone(scenario, max_wait_ms=0)


@pytest.mark.usefixtures("in_pieces")
def test_a_fetch_without_records_responds_when_its_time_is_over() -> None:
    async def scenario(fetching: FakeFetch, partitions: list[Watched]) -> None:
        assert sizes(await response_to(LargeFetch(fetching, BY_NAME).start())) == [0] * 4
        assert fetching.broker.fetch_stats.expired == [1, 0]

    alone(scenario, max_wait_ms=5)


@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize("turns", [0, 1, 3, 5, 8, 12, 20])
def test_a_fetch_can_be_cancelled_at_any_moment(turns: int) -> None:
    async def scenario(fetching: FakeFetch, partitions: list[Watched]) -> None:
        deferred = LargeFetch(fetching, BY_NAME).start()
        for _ in range(turns):
            await asyncio.sleep(0)
        deferred.cancel()
        partitions[0].add()

    alone(scenario)


@pytest.mark.usefixtures("in_pieces")
def test_a_follower_that_sends_its_next_request_gets_its_response() -> None:
    async def scenario(fetching: FakeFetch, partitions: list[Watched]) -> None:
        large = LargeFetch(fetching, BY_NAME)
        deferred = large.start()
        while large._news is None:
            await asyncio.sleep(0)
        large.give_up()
        assert sizes(await response_to(deferred)) == [0] * 4

    alone(scenario)


@pytest.mark.usefixtures("in_pieces")
def test_partitions_of_a_response_that_the_client_ignores_are_sent_again() -> None:
    async def scenario(fetching: FakeFetch, partitions: list[Watched]) -> None:
        session = fetching.session
        partitions[0].bytes = 1
        counted: list[int] = []

        def count(partition: Any, size: int) -> None:
            counted.append(size)
            if len(counted) == 2:  # the client continues the session over another connection
                assert session._session is not None
                session._session.advance_epoch(0)

        fetching.count = count
        response: Any = await response_to(LargeFetch(fetching, BY_NAME).start())
        assert response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert {asked.high_watermark for asked in session.partitions} == {NOT_SENT_YET}

    alone(scenario)


@pytest.mark.usefixtures("in_pieces")
def test_a_fetch_that_fails_has_an_error() -> None:
    async def scenario(fetching: FakeFetch, partitions: list[Watched]) -> None:
        def fail() -> None:
            raise RuntimeError

        fetching.on_read = fail
        response: Any = await response_to(LargeFetch(fetching, BY_NAME).start())
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR

    alone(scenario)


def test_many_slices_are_not_read_in_one_turn() -> None:
    slices: list[Any] = [LogSlice(None, 0, 0, 0, 0) for _ in range(SLICES_AT_ONCE_MAX)]
    assert small_enough([b"head", *slices]) == b"head"
    assert small_enough([b"head", *slices, slices[0]]) is None


def test_a_long_response_is_not_copied_into_one_write() -> None:
    assert small_enough([b"head", bytes(CHUNK_BYTES - 4)]) == b"head" + bytes(CHUNK_BYTES - 4)
    assert small_enough([b"head", bytes(CHUNK_BYTES)]) is None


@pytest.mark.parametrize("version", [4, 7, 11, 12, 13, 16, 18])
def test_an_encoded_response_can_still_be_throttled(version: int) -> None:
    def response() -> FetchResponse:
        topics = [
            FetchResponse.FetchableTopicResponse(
                topic="t" if version < 13 else "",
                partitions=[Data(partition_index=index, records=b"r" * index) for index in range(300)],
            )
        ]
        nodes = [FetchResponse.NodeEndpoint(node_id=1, host="a", port=9092)] if version >= 16 else []
        return FetchResponse(session_id=7 if version >= 7 else 0, responses=topics, node_endpoints=nodes)

    plain, encoded = response(), at_once(encode_in_steps(response(), version))
    plain.throttle_time_ms = encoded.throttle_time_ms = 1234
    parts: list[bytes] = []
    encoder(version)(encoded, parts.append)
    assert b"".join(parts) == plain.encode(version)
    others: list[bytes] = []
    encoder(version)(plain, others.append)
    assert b"".join(others) == plain.encode(version)
