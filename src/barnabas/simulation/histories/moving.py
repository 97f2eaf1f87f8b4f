"""An administrator that moves partitions of all topics, including internal ones, while other clients use
them.

In: a stage with a cluster, a client. Out: random reassignments, some of which are cancelled, and leader
elections, until the faults are over.
Does not know: clients of the partitions, checks.
"""

from __future__ import annotations

import asyncio

from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from barnabas.simulation.histories.cluster_stage import ClusterStage
from barnabas.simulation.world.client import SimulatedClient

PAUSE_S = 0.8
CANCEL_CHANCE, ELECT_CHANCE = 0.15, 0.15
TIMEOUT_MS = 3_000


class Mover:
    def __init__(self, stage: ClusterStage) -> None:
        self._stage = stage
        self.moves = 0

    async def run(self, client: SimulatedClient) -> None:
        """Move partitions until the history ends: the job of a client."""
        while not self._stage.faults_are_over:
            await asyncio.sleep(client.rng.expovariate(1 / PAUSE_S))
            chance = client.rng.random()
            if chance < ELECT_CHANCE:
                request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=TIMEOUT_MS)
                await client.ask(request, ElectLeadersResponse)
            else:
                await self._move(client, cancels=chance < ELECT_CHANCE + CANCEL_CHANCE)

    async def _move(self, client: SimulatedClient, *, cancels: bool) -> None:
        image = self._stage.cluster.image()
        if image is None or not image.topics.by_name:
            return
        name = client.rng.choice(sorted(image.topics.by_name))
        partition = client.rng.choice(sorted(image.topics.by_name[name].partitions))
        brokers = list(self._stage.shape.brokers)
        client.rng.shuffle(brokers)
        topic = AlterPartitionReassignmentsRequest.ReassignableTopic
        part = topic.ReassignablePartition(
            partition_index=partition,
            replicas=None if cancels else brokers[: self._stage.replication_factor],
        )
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=TIMEOUT_MS, topics=[topic(name=name, partitions=[part])]
        )
        response = await client.ask(request, AlterPartitionReassignmentsResponse)
        if response is None or response.error_code or cancels:
            return
        if not response.responses[0].partitions[0].error_code:
            self.moves += 1
