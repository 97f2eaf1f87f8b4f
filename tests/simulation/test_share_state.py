"""Share state on three simulated nodes: persisters find their coordinators, also while those are killed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.broker.shares.persister import SharePersister
from barnabas.protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from barnabas.protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from barnabas.protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from barnabas.shares.state.apis import Item, request_of, results_of
from barnabas.shares.state.keys import ShareKey
from barnabas.simulation.histories.cluster_stage import ClusterStage
from barnabas.simulation.histories.stage import create_topic
from barnabas.simulation.world.cluster import Shape
from barnabas.simulation.world.node import SimulatedNode
from barnabas.simulation.world.world import World

PARTITIONS = 8
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.snapshot.update.records.per.snapshot": "4",
    "share.coordinator.cold.partition.snapshot.interval.ms": "2000",
    "share.coordinator.state.topic.prune.interval.ms": "1500",
}
InitializeData = InitializeShareGroupStateRequest.InitializeStateData.PartitionData
ReadData = ReadShareGroupStateRequest.ReadStateData.PartitionData
WriteData = WriteShareGroupStateRequest.WriteStateData.PartitionData


class Shared:
    """One topic that a group shares, and the persisters of a cluster's nodes."""

    def __init__(self, stage: ClusterStage, topic_id: bytes) -> None:
        self.stage = stage
        self.topic_id = topic_id

    async def call(self, node: SimulatedNode, method: str, request: Any) -> list[Any]:
        """The results of the persister of a node, called by the node itself."""
        assert node.node is not None and node.process is not None
        persister: SharePersister = node.node.broker.share_persister
        response = await node.process.spawn(getattr(persister, method)(request))
        return [result.data for result in results_of(response)]

    def key(self, partition: int) -> ShareKey:
        return ShareKey("group", self.topic_id, partition)

    async def initialize(self, node: SimulatedNode) -> None:
        items = [
            Item(self.key(each), InitializeData(partition=each, state_epoch=1)) for each in range(PARTITIONS)
        ]
        for data in await self.call(node, "initialize", request_of(InitializeShareGroupStateRequest, items)):
            assert not data.error_code, data.error_message

    async def write(self, node: SimulatedNode, first_offset: int) -> None:
        """One record of every partition is acknowledged."""
        batch = WriteData.StateBatch(
            first_offset=first_offset, last_offset=first_offset, delivery_state=2, delivery_count=1
        )
        items = [
            Item(
                self.key(each),
                WriteData(
                    partition=each, state_epoch=1, leader_epoch=0, start_offset=0, state_batches=[batch]
                ),
            )
            for each in range(PARTITIONS)
        ]
        for data in await self.call(node, "write", request_of(WriteShareGroupStateRequest, items)):
            assert not data.error_code, data.error_message

    async def read(self, node: SimulatedNode) -> list[list[tuple[int, int]]]:
        items = [Item(self.key(each), ReadData(partition=each, leader_epoch=0)) for each in range(PARTITIONS)]
        found = []
        for data in await self.call(node, "read", request_of(ReadShareGroupStateRequest, items)):
            assert not data.error_code, data.error_message
            found.append([(batch.first_offset, batch.last_offset) for batch in data.state_batches])
        return found

    def coordinator_of(self, partition: int) -> int:
        image = self.stage.cluster.image()
        assert image is not None
        brokers = [each.node for each in self.stage.cluster.nodes.values() if each.node is not None]
        return brokers[0].broker.share_coordinator.topic.leader_of(str(self.key(partition)))


@pytest.fixture
def world() -> Iterator[World]:
    with World(5) as world:
        yield world


async def opened(world: World) -> Shared:
    stage = ClusterStage(world, SETTINGS, Shape((1, 2, 3), (1, 2, 3)))
    await stage.open()
    shared = Shared(stage, await create_topic(stage, "orders", PARTITIONS))
    await stage.until(stage.is_whole, 60, "all replicas are in sync")
    return shared


def test_any_node_reads_what_any_other_wrote(world: World) -> None:
    async def history() -> None:
        shared = await opened(world)
        nodes = list(shared.stage.cluster.nodes.values())
        await shared.initialize(nodes[0])
        for number, node in enumerate(nodes):
            await shared.write(node, 2 * number)
        for node in nodes:
            assert await shared.read(node) == [[(0, 0), (2, 2), (4, 4)]] * PARTITIONS

    world.run(history(), 300)


def test_requests_to_one_coordinator_are_combined_and_keep_their_order(world: World) -> None:
    async def history() -> None:
        shared = await opened(world)
        nodes = list(shared.stage.cluster.nodes.values())
        await shared.initialize(nodes[0])
        await asyncio.gather(*(shared.write(node, 2 * number) for number in range(20) for node in nodes))
        wanted = [(2 * number, 2 * number) for number in range(20)]
        assert await shared.read(nodes[2]) == [wanted] * PARTITIONS

    world.run(history(), 300)


def test_records_that_are_not_needed_are_deleted_on_all_replicas(world: World) -> None:
    async def history() -> None:
        shared = await opened(world)
        cluster = shared.stage.cluster
        await shared.initialize(cluster.nodes[1])
        for number in range(30):
            await shared.write(cluster.nodes[1], 2 * number)

        def are_pruned() -> bool:
            logs = [
                partition.log
                for node in cluster.nodes.values()
                if node.node is not None
                for partition in node.node.broker.partitions
                if partition.topic == "__share_group_state" and partition.log.end_offset
            ]
            assert logs
            return all(log.log_start_offset > 20 for log in logs)

        await shared.stage.until(are_pruned, 60, "the logs start later")
        victim = cluster.nodes[shared.coordinator_of(0)]
        world.loop.call_soon(victim.kill)
        wanted = [(2 * number, 2 * number) for number in range(30)]
        assert await shared.read(cluster.nodes[victim.node_id % 3 + 1]) == [wanted] * PARTITIONS

    world.run(history(), 300)


@pytest.mark.parametrize("ending", ["kill", "lose_power"])
def test_nothing_that_was_written_is_lost_when_coordinators_end(world: World, ending: str) -> None:
    async def history() -> None:
        shared = await opened(world)
        cluster = shared.stage.cluster
        await shared.initialize(cluster.nodes[1])
        wanted = []
        for number in range(9):
            victim = cluster.nodes[shared.coordinator_of(number % PARTITIONS)]
            writer = cluster.nodes[victim.node_id % 3 + 1]
            world.loop.call_soon(getattr(victim, ending))
            await shared.write(writer, 2 * number)  # its coordinators are retried until others took over
            wanted.append((2 * number, 2 * number))
            await shared.stage.until(shared.stage.is_whole, 120, "all replicas are in sync again")
            for node in cluster.nodes.values():
                assert await shared.read(node) == [wanted] * PARTITIONS

    world.run(history(), 900)
