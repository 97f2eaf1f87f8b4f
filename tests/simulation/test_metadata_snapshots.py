"""A node that was cut off for so long that the leader has deleted its place of the metadata log: it installs
the leader's snapshot, serves its clients meanwhile, and stays a follower, however long that takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.quorum.metadata_replica import MetadataReplica
from barnabas.raft.snapshot_ids import SnapshotId
from barnabas.simulation.histories.cluster_stage import ClusterStage
from barnabas.simulation.histories.stage import create_topic
from barnabas.simulation.world.cluster import Shape
from barnabas.simulation.world.faults import Fault, Kind
from barnabas.simulation.world.node import SimulatedNode
from barnabas.simulation.world.world import World

from .asking import Asking

SHAPE = Shape((1, 2, 3), (1, 2, 3))
PATIENCE_S = 60
LONGER_THAN_A_FETCH_TIMEOUT_S = 5.0
SMALL_SNAPSHOTS = {
    "metadata.log.max.record.bytes.between.snapshots": "1500",
    "metadata.max.retention.bytes": "3000",
}


class Storing:
    """Stores of snapshots in a thread, held back until the gate is open."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.held: list[MetadataReplica] = []
        self._gate = asyncio.Event()
        store = MetadataReplica._store

        async def hold(log: MetadataReplica, snapshot: SnapshotId, data: bytes) -> None:
            self.held.append(log)
            await self._gate.wait()
            await store(log, snapshot, data)

        patch.setattr(MetadataReplica, "_store", hold)

    def open(self) -> None:
        self._gate.set()


class CutOff:
    """A cluster in which a follower of the quorum comes back, and has to install a snapshot."""

    def __init__(self, stage: ClusterStage, storing: Storing) -> None:
        self.stage = stage
        self.storing = storing
        self._client = Asking()
        self.node: SimulatedNode

    async def begin(self) -> None:
        stage = self.stage
        await create_topic(stage, "first", 1)
        stage.add("client", self._client.serve)
        await stage.until(stage.is_whole, PATIENCE_S, "all replicas are in sync")
        leader = next(each for each in stage.cluster.nodes.values() if self.log(each).leader is not None)
        self.node = next(each for each in stage.cluster.nodes.values() if each is not leader)
        place = SHAPE.ids.index(self.node.node_id)
        injector = stage._fault_injector([])
        injector.schedule([Fault(0.0, Kind.ISOLATE, 6.0, place + len(SHAPE.ids))])
        await asyncio.sleep(0.05)
        own_end, number = self.log(self.node).end_offset, 0
        while self.log(leader).start_offset <= own_end:
            await create_topic(stage, f"t{number}", 3)
            number += 1
            assert number < 100
        await stage.until(lambda: bool(self.storing.held), PATIENCE_S, "it stores a snapshot")

    def log(self, node: SimulatedNode) -> Any:
        assert node.metadata is not None
        return node.metadata

    async def topics(self) -> set[str]:
        """What the node that was cut off says."""
        found = await self._client.ask(
            MetadataRequest(topics=None), MetadataResponse, self.stage.cluster.brokers[self.node.node_id]
        )
        return {topic.name for topic in found.topics}


Check = Callable[[CutOff], Coroutine[Any, Any, None]]


@pytest.fixture
def cut_off(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Check], None]]:
    with World(5) as world:

        def live(check: Check) -> None:
            async def whole() -> None:
                stage = ClusterStage(world, SMALL_SNAPSHOTS, SHAPE)
                await stage.open()
                history = CutOff(stage, Storing(monkeypatch))
                await history.begin()
                await check(history)

            world.run(whole(), 600)

        yield live


def test_a_node_serves_while_it_installs_and_then_knows_everything(
    cut_off: Callable[[Check], None],
) -> None:
    async def check(history: CutOff) -> None:
        node, stage = history.node, history.stage
        log = history.log(node)
        epoch = log.election_state.epoch
        assert "first" in await history.topics()
        assert "t0" not in await history.topics()
        await asyncio.sleep(LONGER_THAN_A_FETCH_TIMEOUT_S)
        assert log.election_state.epoch == epoch, "it stood for election"
        assert history.storing.held == [log]
        assert log.stats.snapshots_loaded == 0
        history.storing.open()
        await stage.until(lambda: log.stats.snapshots_loaded == 1, PATIENCE_S, "it is installed")
        await stage.wait_until_whole()
        assert {"first", "t0"} <= await history.topics()
        assert log.image.topics == stage.cluster.image().topics  # type: ignore[union-attr]
        assert history.storing.held == [log], "it stopped following, and began again"

    cut_off(check)


def test_a_node_that_is_killed_while_it_installs_begins_again(cut_off: Callable[[Check], None]) -> None:
    async def check(history: CutOff) -> None:
        node, stage = history.node, history.stage
        lives = node.lives
        stage.world.loop.call_soon(node.kill)
        await stage.until(lambda: len(history.storing.held) == 2, PATIENCE_S, "it stores it again")
        history.storing.open()
        await stage.until(lambda: node.lives > lives and node.is_up, PATIENCE_S, "it is back")
        await stage.wait_until_whole()
        assert {"first", "t0"} <= await history.topics()

    cut_off(check)
