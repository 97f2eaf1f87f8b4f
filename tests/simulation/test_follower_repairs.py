"""A follower that was away for long: its leaders' logs begin where its own do not reach."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.broker.partitions.partition import Partition
from barnabas.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from barnabas.protocol.messages.produce import ProduceResponse
from barnabas.simulation.histories.cluster_stage import ClusterStage
from barnabas.simulation.histories.stage import create_topic
from barnabas.simulation.world.cluster import Shape
from barnabas.simulation.world.node import SimulatedNode
from barnabas.simulation.world.world import World

from .asking import Asking, produced

TOPIC, PARTITIONS = "many", 40
ALL = -1  # records up to the high watermark
AWAY_ID = 4
AWAY_S = 60.0
Delete = DeleteRecordsRequest.DeleteRecordsTopic


@pytest.fixture
def world() -> Iterator[World]:
    with World(8) as world:
        yield world


def test_many_partitions_out_of_range_are_repaired_by_few_requests(world: World) -> None:
    async def history() -> None:
        stage = ClusterStage(
            world, {"leader.imbalance.check.interval.seconds": "3000"}, Shape((1,), (2, 3, 4))
        )
        await stage.open()
        await create_topic(stage, TOPIC, PARTITIONS)
        await stage.until(stage.is_whole, 60, "all replicas are in sync")
        client = Asking()
        stage.add("client", client.serve)
        away = stage.cluster.nodes[AWAY_ID]
        away.down_s = AWAY_S
        await away.stop()
        await stage.until(lambda: AWAY_ID not in leaders(stage).values(), 60, "others lead")
        for number in range(PARTITIONS):
            while not is_written(await client.ask(produced(TOPIC, b"gone", -1, number), ProduceResponse)):
                pass  # it asked who is gone
        for leader, numbers in by_leader(stage).items():
            parts = [Delete.DeleteRecordsPartition(partition_index=each, offset=ALL) for each in numbers]
            request = DeleteRecordsRequest(topics=[Delete(name=TOPIC, partitions=parts)], timeout_ms=5000)
            deleted = await client.ask(request, DeleteRecordsResponse, stage.cluster.brokers[leader])
            assert not any(each.error_code for each in deleted.topics[0].partitions)
        assert not away.is_up
        await stage.until(lambda: away.is_up, 2 * AWAY_S, "the follower is back")
        await stage.wait_until_whole()

        for partition in partitions_of(away):
            assert partition.log.log_start_offset == partition.log.end_offset > 0
        assert away.node is not None
        fetchers = list(away.node._replicas.following._fetchers.values())
        assert sum(fetcher._repairs.requests for fetcher in fetchers) <= 4 * len(fetchers) < PARTITIONS

    world.run(history(), 900)


def is_written(answer: ProduceResponse | None) -> bool:
    return answer is not None and not answer.responses[0].partition_responses[0].error_code


def leaders(stage: ClusterStage) -> dict[int, int]:
    image = stage.cluster.image()
    assert image is not None
    return {number: each.leader for number, each in image.topics.by_name[TOPIC].partitions.items()}


def by_leader(stage: ClusterStage) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for number, leader in leaders(stage).items():
        found.setdefault(leader, []).append(number)
    return found


def partitions_of(node: SimulatedNode) -> list[Partition]:
    assert node.node is not None
    return [each for each in node.node.broker.partitions if each.topic == TOPIC]
