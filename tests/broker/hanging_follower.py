"""Two real brokers on virtual time: a leader, a follower that may hang, and a producer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from barnabas.broker.broker import Broker
from barnabas.broker.partitions.partition import Partition
from barnabas.client.core.address import Address
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.records.record import Record, build_batch
from barnabas.simulation.histories.cluster_stage import ClusterStage
from barnabas.simulation.histories.stage import create_topic
from barnabas.simulation.world.client import SimulatedClient
from barnabas.simulation.world.cluster import Shape
from barnabas.simulation.world.routed_client import RoutedClient
from barnabas.simulation.world.world import World

TOPIC = "t"
NEVER_MS = "86400000"
PATIENT = {
    "replica.lag.time.max.ms": NEVER_MS,
    "broker.session.timeout.ms": NEVER_MS,
    "replica.socket.timeout.ms": NEVER_MS,
}  # nobody notices that the follower hangs
TIMEOUT_MS = 1_000


class Scene:
    """A leader, a follower that hangs, and a connection to the leader."""

    def __init__(self, stage: ClusterStage, client: RoutedClient) -> None:
        self.stage, self.client = stage, client
        self.loop = stage.world.loop
        image = stage.cluster.image()
        assert image is not None
        self.leader_id = image.topics.by_name[TOPIC].partitions[0].leader
        self.follower = next(
            node for node_id, node in stage.cluster.nodes.items() if node_id in {2, 3} - {self.leader_id}
        )

    @property
    def leader(self) -> Broker:
        node = self.stage.cluster.nodes[self.leader_id].node
        assert node is not None
        return node.broker

    @property
    def partition(self) -> Partition:
        return self.leader.partitions.leader(TOPIC, 0)

    @property
    def address(self) -> Address:
        return self.stage.cluster.brokers[self.leader_id]

    async def pause_follower(self) -> None:
        self.loop.call_soon(self.follower.pause)
        await asyncio.sleep(0.1)

    async def resume_follower(self) -> None:
        self.loop.call_soon(self.follower.resume)
        await asyncio.sleep(0.1)

    async def produce(self, *, timeout_ms: int = TIMEOUT_MS, purpose: str = "") -> ProduceResponse | None:
        batch = build_batch([Record(timestamp=self.stage.world.clock.now_ms(), value=b"v")])
        data = ProduceRequest.TopicProduceData
        request = ProduceRequest(
            acks=-1,
            timeout_ms=timeout_ms,
            topic_data=[
                data(
                    name=TOPIC,
                    partition_data=[data.PartitionProduceData(index=0, records=memoryview(batch))],
                )
            ],
        )
        return await self.client.ask_at(
            self.address, request, ProduceResponse, timeout_ms=60_000, version_max=12, purpose=purpose
        )

    async def codes(self, count: int) -> Counter[ErrorCode | None]:
        """Of so many requests, pipelined over one connection; None for a connection that is lost."""
        answers = await asyncio.gather(*(self.produce() for _ in range(count)))
        return Counter(code_of(answer) for answer in answers)


def code_of(answer: ProduceResponse | None) -> ErrorCode | None:
    return ErrorCode(answer.responses[0].partition_responses[0].error_code) if answer is not None else None


def play(world: World, act: Callable[[Scene], Awaitable[None]]) -> None:
    async def whole() -> None:
        stage = ClusterStage(world, dict(PATIENT), Shape((1,), (2, 3)))
        await stage.open()
        await create_topic(stage, TOPIC, 1)
        await stage.until(stage.is_whole, 30, "both replicas are in sync")
        over: list[None] = []

        async def job(client: SimulatedClient) -> None:
            assert isinstance(client, RoutedClient)
            await act(Scene(stage, client))
            over.append(None)

        stage.add("producer", job)
        await stage.until(lambda: bool(over), 120, "the producer is done")

    world.run(whole(), 300)
