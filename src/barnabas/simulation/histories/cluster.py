"""A history of a cluster: records as in `records`, on replicated partitions, while nodes fail, links are cut,
and administrators move the partitions.

Checks, in addition to those of `records` and `cluster_checks`: acknowledged changes of administrators are
never lost; after the faults, every replica is in sync again, and all replicas are equal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.client.core.fetching import ConsumerRecord
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from barnabas.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from barnabas.simulation.histories.cluster_stage import PROMISES, ClusterStage, cluster_plan, shape_of
from barnabas.simulation.histories.electorate import Electorate, changes_voters
from barnabas.simulation.histories.reading import Reader
from barnabas.simulation.histories.records import RETRY_S, TOPIC, RecordsHistory
from barnabas.simulation.histories.stage import Stage
from barnabas.simulation.world.client import Job, SimulatedClient
from barnabas.simulation.world.faults import Plan
from barnabas.simulation.world.history import Wrong
from barnabas.simulation.world.world import World, rng_of

SECONDS = 8.0
SECONDS_TO_RECOVER = 60.0
FAULTS_MAX = 9
PAUSE_S = (0.04, 0.1)  # longer than with one node: each record is processed by three nodes
ADMIN_PAUSE_S = 0.7
EXTRA = "extra-{}"
FOR_GOOD = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


class ClusterHistory(RecordsHistory):
    name = "cluster-records"
    seconds_max = 900.0
    seconds = SECONDS
    pauses_s = PAUSE_S
    old_leaders_s = 20.0  # a leader that is cut off goes on responding until it learns of the next one
    stage_class = ClusterStage

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        rng = rng_of(seed, "cluster")
        self.shape = shape_of(rng)
        self.cluster_promise = rng.choice(PROMISES)
        self.administrators = rng.randrange(0, 3)
        self.faults: Plan = cluster_plan(
            rng, self.cluster_promise, self.shape, until_s=SECONDS, count_max=FAULTS_MAX
        )
        self.changes_voters = changes_voters(rng_of(seed, "voters"), self.cluster_promise, self.shape)
        self._created: set[str] = set()
        self._deleted: set[str] = set()
        self._moves = 0

    @property
    def survives_power_loss(self) -> bool:
        return True

    def make_stage(self, world: World, properties: dict[str, str]) -> Stage:
        own = {name: value for name, value in properties.items() if name not in self.promise.properties}
        stage = self.stage_class(world, {**own, **self.cluster_promise.properties}, self.shape)
        self._cluster_stage, self._electorate = stage, Electorate(stage)
        if self.changes_voters:
            stage.administrators["electorate"] = self._electorate.run
        return stage

    def others(self) -> dict[str, Job]:
        return {f"administrator-{index}": self._administrate for index in range(self.administrators)}

    async def run(self, world: World, faults: Plan) -> dict[str, int]:
        counts = await super().run(world, faults)
        stage = self._cluster_stage
        await stage.until(self._is_as_told, SECONDS_TO_RECOVER, "topics are as administrators were told")
        return counts | {
            "topics created": len(self._created) + len(self._deleted),
            "topics deleted": len(self._deleted),
            "reassignments begun": self._moves,
            "voters wiped": stage.cluster.voters_wiped,
            "voters removed": self._electorate.removed,
        }

    async def settle(self) -> None:
        """Wait for new leaders: their high watermark may still be below acknowledged records."""
        await self._cluster_stage.wait_until_whole()

    def _is_as_told(self) -> bool:
        image = self._cluster_stage.cluster.image()
        assert image is not None
        names = set(image.topics.by_name)
        return self._created <= names and not self._deleted & names

    # -- readers -----------------------------------------------------------------------------------

    async def _fetch(self, reader: Reader, wait_ms: int) -> list[ConsumerRecord]:
        """The high watermark of a new leader may be below that of the last one for a while. Records that were
        read are committed all the same."""
        records = await reader.fetch(wait_ms)
        if records is None:
            if reader.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                raise Wrong(f"{reader.where} ends before {reader.position}, which was read")
            await asyncio.sleep(RETRY_S)
            return []
        return records

    # -- administrators ----------------------------------------------------------------------------

    async def _administrate(self, client: SimulatedClient) -> None:
        deeds: list[Callable[[SimulatedClient], object]] = [
            self._create,
            self._delete,
            self._reassign,
            self._reassign,
            self._cancel,
            self._elect,
        ]
        while not self._is_over:
            deed = client.rng.choice(deeds)
            await deed(client)  # type: ignore[misc]
            await asyncio.sleep(client.rng.expovariate(1 / ADMIN_PAUSE_S))
        self._done.add(client.host)

    async def _create(self, client: SimulatedClient) -> None:
        name = EXTRA.format(f"{client.host}-{client.rng.randrange(1000)}")
        if name in self._deleted | self._created:
            return
        topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=2, replication_factor=-1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=3000)
        response = await client.ask(request, CreateTopicsResponse)
        if response is not None and response.topics[0].error_code in FOR_GOOD:
            self._created.add(name)

    async def _delete(self, client: SimulatedClient) -> None:
        if not self._created:
            return
        name = client.rng.choice(sorted(self._created))
        self._created.discard(name)  # from here on it is unknown whether it exists
        request = DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=name)], timeout_ms=3000
        )
        response = await client.ask(request, DeleteTopicsResponse)
        if response is not None and response.responses[0].error_code == ErrorCode.NONE:
            self._deleted.add(name)

    async def _reassign(self, client: SimulatedClient) -> None:
        brokers = list(self.shape.brokers)
        client.rng.shuffle(brokers)
        await self._alter(client, brokers[: min(3, len(brokers))])

    async def _cancel(self, client: SimulatedClient) -> None:
        await self._alter(client, None)

    async def _alter(self, client: SimulatedClient, replicas: list[int] | None) -> None:
        topic = AlterPartitionReassignmentsRequest.ReassignableTopic
        part = topic.ReassignablePartition(
            partition_index=client.rng.randrange(len(self.known)), replicas=replicas
        )
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=3000, topics=[topic(name=TOPIC, partitions=[part])]
        )
        response = await client.ask(request, AlterPartitionReassignmentsResponse)
        if response is None or response.error_code or replicas is None:
            return
        if not response.responses[0].partitions[0].error_code:
            self._moves += 1

    async def _elect(self, client: SimulatedClient) -> None:
        request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=3000)
        await client.ask(request, ElectLeadersResponse)
