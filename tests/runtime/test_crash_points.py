"""A crash at every write, sync and rename in the life of a metadata log: committed records are there
afterwards.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from barnabas.simulation.world.disk import SimulatedDisk, Stopped
from runtime.nodes import Node, run, settings_for

DATA = Path("/data")
STEP_SHORT = 3  # `make test` crashes at every third operation


@dataclass
class Promises:
    topics: list[str] = field(default_factory=list)  # whose creation got its response
    asked: list[str] = field(default_factory=list)


def node_on(disk: SimulatedDisk) -> Node:
    settings = settings_for(DATA, metadata_max_retention_bytes="2500", metadata_max_idle_interval_ms="0")
    return Node(settings, disk)


def formatted() -> SimulatedDisk:
    disk = SimulatedDisk()
    node_on(disk).format()
    disk.sync_directory("/")
    return disk


async def create(node: Node, promises: Promises) -> None:
    name = f"topic-{len(promises.asked)}"
    promises.asked.append(name)
    assert not (await node.create(name)).error_code
    promises.topics.append(name)


async def a_life(disk: SimulatedDisk, promises: Promises) -> None:
    """Two elections, topics, rolled segments, snapshots and their deletion, a close and another start."""
    node = await node_on(disk).start()
    await create(node, promises)
    await node.log.snapshot()
    for _ in range(3):
        await create(node, promises)
        node.log._log.roll()  # type: ignore[attr-defined]
        await node.log.snapshot()
    node.context.graveyard.remove_due(1 << 60)
    epoch = await node.stop()
    node = await node_on(disk).start(epoch)
    await create(node, promises)
    await node.log.snapshot()
    await create(node, promises)
    await node.stop()


def play(stop_at: int) -> tuple[SimulatedDisk, Promises]:
    disk, promises = formatted(), Promises()
    disk.operations = 0
    disk.stop_at(stop_at, torn=Random(stop_at))
    try:
        run(lambda: until_stopped(disk, promises))
    except (Stopped, asyncio.CancelledError):
        assert stop_at
    return disk, promises


async def until_stopped(disk: SimulatedDisk, promises: Promises) -> None:
    """Run until the disk stops. An exception in a callback of the loop must reach the waiting test."""
    task = asyncio.current_task()
    assert task is not None
    disk.on_stop = task.cancel
    await a_life(disk, promises)


async def check(disk: SimulatedDisk, promises: Promises, where: str) -> None:
    node = await node_on(disk).start()
    known = set(node.controller.image.topics.by_name)
    assert set(promises.topics) <= known <= set(promises.asked), where
    assert not node.controller.image.cluster.brokers[1].fenced, where
    assert not (await node.create("one-more")).error_code, where
    await node.stop()
    again = await node_on(disk).start()
    assert set(again.controller.image.topics.by_name) == known | {"one-more"}, where
    await again.stop()


@pytest.mark.parametrize(
    "lost_power", [False, pytest.param(True, marks=pytest.mark.long)], ids=["killed", "without power"]
)
def test_a_crash_at_every_operation_loses_no_metadata(
    lost_power: bool, request: pytest.FixtureRequest
) -> None:
    step = 1 if request.config.getoption("--long") else STEP_SHORT
    for stop_at in range(1, play(0)[0].operations + 1, step):
        disk, promises = play(stop_at)
        after = disk.after_power_loss(Random(stop_at)) if lost_power else disk.after_kill()
        run(lambda after=after, promises=promises, at=stop_at: check(after, promises, f"stopped at {at}"))


def test_the_life_covers_every_kind_of_operation() -> None:
    disk, promises = play(0)

    assert len(promises.topics) == 6
    assert (
        len([name for name in disk.listdir("/data/__cluster_metadata-0") if name.endswith(".checkpoint")])
        == 1
    )
    kinds: set[str] = set()
    disk, promises = formatted(), Promises()
    disk.observer = lambda kind, path: kinds.add(kind)
    asyncio.run(a_life(disk, promises))
    assert {"write", "sync", "rename", "unlink"} <= kinds
