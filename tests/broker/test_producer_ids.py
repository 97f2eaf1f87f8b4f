"""Producer ids from blocks: each id once, and the next block before the current one is used up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from barnabas.broker.coordinators.producer_ids import ProducerIds
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse
from barnabas.testing.waiting import until

BLOCK = 1000


class Controller:
    """Grants blocks, one after the other, or refuses."""

    def __init__(self) -> None:
        self.granted = 0
        self.error = ErrorCode.NONE
        self.open = asyncio.Event()
        self.open.set()

    async def allocate(self) -> AllocateProducerIdsResponse:
        await self.open.wait()
        if self.error:
            return AllocateProducerIdsResponse(error_code=self.error)
        start, self.granted = self.granted * BLOCK, self.granted + 1
        return AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK)


def play(scenario: Callable[[Controller, ProducerIds], Awaitable[None]]) -> None:
    async def run() -> None:
        controller = Controller()
        await scenario(controller, ProducerIds(controller.allocate))

    asyncio.run(run())


def test_ids_follow_each_other_over_blocks() -> None:
    async def scenario(controller: Controller, ids: ProducerIds) -> None:
        assert [await ids.next() for _ in range(2 * BLOCK + 5)] == list(range(2 * BLOCK + 5))

    play(scenario)


def test_concurrent_requests_share_a_block() -> None:
    async def scenario(controller: Controller, ids: ProducerIds) -> None:
        found = await asyncio.gather(*(ids.next() for _ in range(50)))
        assert sorted(found) == list(range(50))
        assert controller.granted == 1

    play(scenario)


def test_the_next_block_is_fetched_before_the_last_id_is_taken() -> None:
    async def scenario(controller: Controller, ids: ProducerIds) -> None:
        await ids.wait_until_ready()
        for _ in range(BLOCK - 50):
            ids.pop()
        await until(lambda: controller.granted == 2, what="the second block is granted")
        assert [ids.pop() for _ in range(100)] == list(range(BLOCK - 50, BLOCK + 50))

    play(scenario)


def test_without_an_id_pop_raises() -> None:
    async def scenario(controller: Controller, ids: ProducerIds) -> None:
        controller.open.clear()
        assert not ids.is_ready and ids.pop_if_ready() is None
        with pytest.raises(KafkaError):
            ids.pop()
        controller.open.set()
        await ids.wait_until_ready()
        assert ids.pop() == 0

    play(scenario)


def test_a_refused_block_is_requested_again() -> None:
    async def scenario(controller: Controller, ids: ProducerIds) -> None:
        controller.error = ErrorCode.STALE_BROKER_EPOCH
        with pytest.raises(KafkaError) as refused:
            await ids.next()
        assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH
        controller.error = ErrorCode.NONE
        assert await ids.next() == 0

    play(scenario)
