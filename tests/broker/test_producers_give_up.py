"""Producers whose requests time out while a follower hangs: two real brokers, on virtual time."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from barnabas.broker.produce.purgatory import CommittedResponse
from barnabas.broker.wire.channel import QUEUE_MAX
from barnabas.protocol import ErrorCode
from barnabas.simulation.world.world import World

from .hanging_follower import Scene, play


@pytest.fixture
def world() -> Iterator[World]:
    with World(5) as world:
        yield world


def test_requests_read_while_others_time_out_time_out_too(world: World) -> None:
    """A connection with the maximum of pending requests reads on when some time out."""
    requests = 2 * QUEUE_MAX + 100

    async def act(scene: Scene) -> None:
        await scene.pause_follower()
        assert await scene.codes(requests) == {ErrorCode.REQUEST_TIMED_OUT: requests}
        assert await scene.codes(1) == {ErrorCode.REQUEST_TIMED_OUT: 1}
        await scene.resume_follower()
        assert await scene.codes(1) == {ErrorCode.NONE: 1}

    play(world, act)


def test_requests_that_timed_out_are_forgotten_though_the_follower_hangs(world: World) -> None:
    async def act(scene: Scene) -> None:
        await scene.pause_follower()
        for _ in range(3):
            assert await scene.codes(100) == {ErrorCode.REQUEST_TIMED_OUT: 100}
        await asyncio.sleep(1)
        assert not scene.partition._committing

    play(world, act)


def test_waiting_requests_do_not_keep_a_closed_connection(world: World) -> None:
    async def act(scene: Scene) -> None:
        await scene.pause_follower()
        asking = asyncio.gather(*(scene.produce(timeout_ms=2**31 - 1, purpose="gone") for _ in range(50)))
        await asyncio.sleep(1)
        committing = scene.partition._committing
        assert committing is not None
        assert len(committing) == 50
        connection = await scene.client.cluster.connection_to(scene.address, "gone")
        await connection.close()
        assert await asking == [None] * 50
        await asyncio.sleep(1)
        assert not committing
        assert not scene.leader.purgatory._waiting
        gc.collect()
        assert not [each for each in gc.get_objects() if isinstance(each, CommittedResponse)]

    play(world, act)
