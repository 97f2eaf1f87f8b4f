"""The persister with coordinators that are elsewhere, move, fail, or are slow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

from barnabas.broker.shares.persister import SharePersister
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from barnabas.runtime.unexpected import UnexpectedErrors
from barnabas.shares.state.apis import Item, Result, items_of, refused, request_of, response_of, results_of
from barnabas.shares.state.keys import ShareKey

Data = WriteShareGroupStateRequest.WriteStateData.PartitionData
PartitionResult = WriteShareGroupStateResponse.WriteStateResult.PartitionResult
TOPIC_ID = bytes(range(16))
HERE, THERE, ELSEWHERE = 1, 2, 3
Answer = Callable[[int, Item], ErrorCode]


class World:
    """One persister; all coordinators are on other brokers unless `leaders` says otherwise."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.leaders: dict[int, int] = {}  # by partition; `THERE` leads others
        self.sent: list[tuple[int, list[tuple[int, int]]]] = []  # broker; partitions with start offsets
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self._answer = answer or (lambda broker_id, item: ErrorCode.NONE)
        self.asked_here = 0
        topic = SimpleNamespace(exists=True, leader_of=self._leader_of)
        coordinator = SimpleNamespace(
            is_started=True, topic=topic, host_for=lambda key: None, ask=self._ask_here
        )
        broker = SimpleNamespace(
            loop=asyncio.get_running_loop(),
            node_id=HERE,
            unexpected=UnexpectedErrors(),
            share_coordinator=coordinator,
            others=SimpleNamespace(send_request=self._send),
        )
        self.persister = SharePersister(cast(Any, broker))

    def _leader_of(self, key: str) -> int:
        return self.leaders.get(int(key.rpartition(":")[2]), THERE)

    async def _ask_here(self, kind: type[Message], items: list[Item]) -> list[Result]:
        self.asked_here += 1
        return [self._result(HERE, item) for item in items]

    async def _send(self, broker_id: int, request: Any, lane: str) -> Any:
        items = items_of(request)
        self.sent.append((broker_id, [(item.key.partition, item.data.start_offset) for item in items]))
        await self.may_answer.wait()
        return response_of(type(request), [self._result(broker_id, item) for item in items])

    def _result(self, broker_id: int, item: Item) -> Result:
        code = self._answer(broker_id, item)
        if code:
            return refused(WriteShareGroupStateRequest, item, KafkaError(code))
        return Result(item.key.topic_id, PartitionResult(partition=item.key.partition))

    async def write(self, start: int, *partitions: int) -> list[ErrorCode]:
        items = [
            Item(ShareKey("g", TOPIC_ID, each), Data(partition=each, start_offset=start))
            for each in partitions
        ]
        response = await self.persister.write(request_of(WriteShareGroupStateRequest, items))
        found = results_of(response)
        assert [result.data.partition for result in found] == list(partitions)
        return [ErrorCode(result.data.error_code) for result in found]


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(30):
            await scenario()

    asyncio.run(limited())


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_each_coordinator_gets_its_partitions() -> None:
    async def scenario() -> None:
        world = World()
        world.leaders = {0: HERE, 1: THERE, 2: ELSEWHERE, 3: THERE}
        assert await world.write(7, 0, 1, 2, 3) == [ErrorCode.NONE] * 4
        assert sorted(world.sent) == [(THERE, [(1, 7), (3, 7)]), (ELSEWHERE, [(2, 7)])]
        assert world.asked_here == 1

    run(scenario)


def test_requests_that_come_while_one_is_under_way_leave_together() -> None:
    async def scenario() -> None:
        world = World()
        world.may_answer.clear()
        calls = [asyncio.ensure_future(world.write(0, 0))]
        while not world.sent:
            await asyncio.sleep(0)
        calls += [asyncio.ensure_future(world.write(each, each)) for each in range(1, 5)]
        await turns()
        assert world.sent == [(THERE, [(0, 0)])]
        world.may_answer.set()
        assert await asyncio.gather(*calls) == [[ErrorCode.NONE]] * 5
        assert world.sent[1:] == [(THERE, [(1, 1), (2, 2), (3, 3), (4, 4)])]

    run(scenario)


def test_two_writes_to_a_share_partition_are_two_requests_in_their_order() -> None:
    async def scenario() -> None:
        world = World()
        world.may_answer.clear()
        writes = [(0, 1), (1, 2), (2, 1), (3, 2), (4, 3)]
        calls = [asyncio.ensure_future(world.write(*each)) for each in writes]
        while not world.sent:
            await asyncio.sleep(0)
        world.may_answer.set()
        await asyncio.gather(*calls)
        assert [parts for _, parts in world.sent] == [[(1, 0), (2, 1)], [(1, 2), (2, 3), (3, 4)]]

    run(scenario)


def test_a_coordinator_that_moved_is_found_again() -> None:
    async def scenario() -> None:
        def answer(broker_id: int, item: Item) -> ErrorCode:
            world.leaders[0] = ELSEWHERE
            return ErrorCode.NONE if broker_id == ELSEWHERE else ErrorCode.NOT_COORDINATOR

        world = World(answer)
        assert await world.write(0, 0) == [ErrorCode.NONE]
        assert [broker_id for broker_id, _ in world.sent] == [THERE, ELSEWHERE]

    run(scenario)


def test_only_partitions_with_errors_that_pass_are_tried_again() -> None:
    async def scenario() -> None:
        codes = {0: [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS], 1: [ErrorCode.FENCED_STATE_EPOCH], 2: []}

        def answer(broker_id: int, item: Item) -> ErrorCode:
            left = codes[item.key.partition]
            return left.pop() if left else ErrorCode.NONE

        world = World(answer)
        found = await world.write(0, 0, 1, 2)
        assert found == [ErrorCode.NONE, ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NONE]
        assert [parts for _, parts in world.sent] == [[(0, 0), (1, 0), (2, 0)], [(0, 0)]]

    run(scenario)


def test_a_later_write_waits_while_an_earlier_one_is_retried() -> None:
    async def scenario() -> None:
        failures = [ErrorCode.NETWORK_EXCEPTION, ErrorCode.NOT_COORDINATOR]
        written: list[int] = []

        def answer(broker_id: int, item: Item) -> ErrorCode:
            if item.data.start_offset == 1 and failures:
                return failures.pop()
            written.append(item.data.start_offset)
            return ErrorCode.NONE

        world = World(answer)
        first = asyncio.ensure_future(world.write(1, 0))
        while not world.sent:
            await asyncio.sleep(0)
        await turns()
        assert await world.write(2, 0) == await first == [ErrorCode.NONE]
        assert written == [1, 2]

    run(scenario)


def test_another_share_partition_does_not_wait_for_a_retry() -> None:
    async def scenario() -> None:
        def answer(broker_id: int, item: Item) -> ErrorCode:
            return ErrorCode.NONE if item.key.partition else ErrorCode.COORDINATOR_NOT_AVAILABLE

        world = World(answer)
        stuck = asyncio.ensure_future(world.write(0, 0))
        while not world.sent:
            await asyncio.sleep(0)
        assert await world.write(0, 1) == [ErrorCode.NONE]
        assert not stuck.done()
        await world.persister.close()
        assert await stuck == [ErrorCode.COORDINATOR_NOT_AVAILABLE]

    run(scenario)


def test_a_lost_connection_and_a_response_with_too_little_are_errors_of_partitions() -> None:
    async def scenario() -> None:
        world = World()
        attempts = 0

        async def send(broker_id: int, request: Any, lane: str) -> Any:
            nonlocal attempts
            attempts += 1
            if attempts == 1:
                raise KafkaError(ErrorCode.NETWORK_EXCEPTION)
            return response_of(type(request), ())

        world.persister._broker.others = cast(Any, SimpleNamespace(send_request=send))
        assert await world.write(0, 0, 1) == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
        assert attempts == 2

    run(scenario)


def test_the_persister_never_raises() -> None:
    async def scenario() -> None:
        def answer(broker_id: int, item: Item) -> ErrorCode:
            raise RuntimeError("a bug")

        world = World(answer)
        world.leaders = {0: HERE}
        assert await world.write(0, 0) == [ErrorCode.UNKNOWN_SERVER_ERROR]

    run(scenario)
