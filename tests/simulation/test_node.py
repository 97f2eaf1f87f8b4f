"""A simulated node ends by each fault and restarts with the data that must survive."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from barnabas.simulation.histories.stage import Stage, create_topic
from barnabas.simulation.world.disk import Failure
from barnabas.simulation.world.world import World


@pytest.fixture
def world() -> Iterator[World]:
    with World(11) as world:
        yield world


def run(world: World, history: Callable[[Stage], Coroutine[Any, Any, None]]) -> Stage:
    async def whole() -> Stage:
        stage = Stage(world, {})
        await stage.open()
        await history(stage)
        return stage

    return world.run(whole(), 300)


async def again(stage: Stage) -> None:
    await stage.until(lambda: not stage.node.is_up, 5, "the node is down")
    await stage.until(lambda: stage.node.is_up, 30, "the node is up again")


def test_a_topic_outlives_every_kind_of_end(world: World) -> None:
    async def history(stage: Stage) -> None:
        await create_topic(stage, "kept", 3)
        for end in (stage.node.kill, stage.node.lose_power):
            world.loop.call_soon(end)
            await again(stage)
            assert stage.node.node is not None
            assert "kept" in stage.node.node.broker.image.topics.by_name
        assert await stage.node.stop()
        await again(stage)
        assert stage.node.node is not None
        assert "kept" in stage.node.node.broker.image.topics.by_name

    assert run(world, history).node.lives == 4


def test_a_folder_that_was_formatted_outlives_a_loss_of_power_at_once(world: World) -> None:
    clusters: list[str] = []

    async def history(stage: Stage) -> None:
        for _ in range(3):
            assert stage.node.node is not None
            clusters.append(stage.node.node.broker.cluster_id)
            world.loop.call_soon(stage.node.lose_power)
            await again(stage)

    run(world, history)

    assert len(set(clusters)) == 1


@pytest.mark.parametrize("loses_power", [False, True], ids=["killed", "without power"])
def test_a_first_start_that_ended_anywhere_is_made_up_for_by_the_next(
    loses_power: bool, request: pytest.FixtureRequest
) -> None:
    operation, lives = 0, 2
    while lives > 1:
        operation += 1 if request.config.getoption("--long") else 4

        async def first_start(world: World, operation: int = operation) -> int:
            stage = Stage(world, {})
            stage.node.stop_at_operation(operation, loses_power=loses_power)
            await stage.open()
            await create_topic(stage, "made", 1)
            return stage.node.lives

        with World(operation) as world:
            lives = world.run(first_start(world), 100)

    assert operation > 30  # it is over when the operation is one that starting does not need


def test_a_node_ends_between_two_operations_of_its_disk(world: World) -> None:
    async def history(stage: Stage) -> None:
        disk = stage.node.disk
        before = disk.operations
        stage.node.stop_at_operation(5, loses_power=True)
        stage.add("creator", lambda client: create_topic(stage, "torn", 2))
        await again(stage)
        assert disk.operations == before + 5
        assert stage.node.disk is not disk

    run(world, history)


def test_a_paused_node_answers_when_it_goes_on(world: World) -> None:
    async def history(stage: Stage) -> None:
        world.loop.call_soon(stage.node.pause)
        world.loop.call_later(3, stage.node.resume)
        await create_topic(stage, "late", 1)
        assert world.loop.time() > 3

    run(world, history)


def test_a_node_whose_metadata_cannot_be_written_gives_up_and_comes_back(world: World) -> None:
    async def history(stage: Stage) -> None:
        stage.node.disk.failures.append(Failure(frozenset({"write", "sync"}), prefix="/data/kafka/__cluster"))
        world.loop.call_later(3, stage.node.disk.failures.clear)
        await again(stage)
        await asyncio.sleep(5)
        await create_topic(stage, "after", 1)

    assert run(world, history).node.lives > 1
