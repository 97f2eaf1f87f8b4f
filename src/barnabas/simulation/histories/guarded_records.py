"""The history of records on a node with an authorizer: the same clients and faults, and a guarded topic.

A warden allows everybody to write to it, and takes the right away again, while intruders write all the time.
Checks, in addition to those of `records`: a write that began and ended while the right was known to be taken
away is refused, and no record of a refused write is ever in the topic. Nobody logs in, so that all clients
are one user; a rule for somebody else closes the topic.
"""

from __future__ import annotations

import asyncio

from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from barnabas.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.records.record import Record, build_batch
from barnabas.security.acls.vocabulary import Operation, PatternType, Permission, ResourceType
from barnabas.simulation.histories.reading import Reader
from barnabas.simulation.histories.records import BY_NAME_MAX, SECONDS_TO_RECOVER, RecordsHistory
from barnabas.simulation.histories.stage import ALREADY_THERE, Stage
from barnabas.simulation.world.client import Job, SimulatedClient
from barnabas.simulation.world.faults import Plan
from barnabas.simulation.world.history import Wrong
from barnabas.simulation.world.world import World

GUARDED = "guarded"
EVERYBODY, SOMEBODY = "User:ANONYMOUS", "User:somebody"
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
INTRUDERS = 2
TURN_S = 0.25  # how long the right is there, and not there
WRITE_S = 0.01
ALLOWED, UNKNOWN = 0, -1  # instead of the number of a time without the right


class GuardedRecordsHistory(RecordsHistory):
    name = "guarded-records"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._closed = UNKNOWN  # the number of the time without the right that it is now
        self._times_closed = 0
        self._is_granting = False  # a request may be on its way
        self._losses = 0  # of power, when the right was taken away
        self._refused: set[bytes] = set()
        self._written = 0
        self._is_made = False

    def make_stage(self, world: World, properties: dict[str, str]) -> Stage:
        return super().make_stage(world, {**properties, **SETTINGS})

    def others(self) -> dict[str, Job]:
        return {"warden": self._guard, **{f"intruder-{number}": self._intrude for number in range(INTRUDERS)}}

    async def run(self, world: World, faults: Plan) -> dict[str, int]:
        counts = await super().run(world, faults)
        return counts | {"guarded": self._written, "refused": len(self._refused)}

    async def settle(self) -> None:
        await super().settle()
        self._stage.add("opener", self._look)
        await self._stage.until(
            lambda: "opener" in self._done, SECONDS_TO_RECOVER, "the guarded records are read"
        )

    @property
    def _time_closed(self) -> int:
        """The number of the time without the right; 0 or less if the right may be there."""
        if self._losses != self._stage.node.power_losses and not self.survives_power_loss:
            return UNKNOWN
        return self._closed

    # -- the warden --------------------------------------------------------------------------------

    async def _guard(self, client: SimulatedClient) -> None:
        if not self._is_made:
            await make_topic(client)
            self._is_made = True
        if self._is_granting:
            self._closed = UNKNOWN
            return  # it was killed while it granted: the request may arrive at any time
        await ask_to_create(client, entry(SOMEBODY, Operation.ALL))
        while not self._is_over:
            self._closed = ALLOWED
            self._is_granting = True
            if await client.ask(creation(entry(EVERYBODY, Operation.WRITE)), CreateAclsResponse) is None:
                self._closed = UNKNOWN
                return  # for the same reason
            self._is_granting = False
            await asyncio.sleep(client.rng.expovariate(1 / TURN_S))
            await client.ask_until_answered(
                deletion(), DeleteAclsResponse, lambda response: not response.filter_results[0].error_code
            )
            self._times_closed += 1
            self._losses = self._stage.node.power_losses
            self._closed = self._times_closed
            await asyncio.sleep(client.rng.expovariate(1 / TURN_S))

    # -- intruders ---------------------------------------------------------------------------------

    async def _intrude(self, client: SimulatedClient) -> None:
        number = 0
        while not self._is_over:
            number += 1
            value = f"{client.host}/{client.lives} {number}".encode()
            before = self._time_closed
            response = await client.ask(write(value), ProduceResponse, version_max=BY_NAME_MAX)
            if response is not None:
                code = ErrorCode(response.responses[0].partition_responses[0].error_code)
                if code is ErrorCode.NONE:
                    self._written += 1
                    if before > 0 and before == self._time_closed:
                        raise Wrong(f"{value.decode()} was written while nobody was allowed to")
                elif code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    self._refused.add(value)
            await asyncio.sleep(client.rng.expovariate(1 / WRITE_S))

    async def _look(self, client: SimulatedClient) -> None:
        """Compare the topic with what was refused."""
        await ask_to_create(client, entry(EVERYBODY, Operation.READ))
        reader = Reader(client, TopicPartition(GUARDED, 0), read_committed=False)
        while not reader.is_at_end:
            for record in await reader.fetch(0) or ():
                if record.value in self._refused:
                    raise Wrong(f"{record.value!r} was refused and is in the topic at {record.offset}")
        self._done.add(client.host)


async def make_topic(client: SimulatedClient) -> None:
    topic = CreateTopicsRequest.CreatableTopic(name=GUARDED, num_partitions=1, replication_factor=1)
    await client.ask_until_answered(
        CreateTopicsRequest(topics=[topic], timeout_ms=5000),
        CreateTopicsResponse,
        lambda response: response.topics[0].error_code in ALREADY_THERE,
    )


async def ask_to_create(client: SimulatedClient, wanted: CreateAclsRequest.AclCreation) -> None:
    await client.ask_until_answered(
        creation(wanted), CreateAclsResponse, lambda response: not response.results[0].error_code
    )


def entry(principal: str, operation: Operation) -> CreateAclsRequest.AclCreation:
    return CreateAclsRequest.AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name=GUARDED,
        resource_pattern_type=PatternType.LITERAL,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=Permission.ALLOW,
    )


def creation(wanted: CreateAclsRequest.AclCreation) -> CreateAclsRequest:
    return CreateAclsRequest(creations=[wanted])


def deletion() -> DeleteAclsRequest:
    return DeleteAclsRequest(
        filters=[
            DeleteAclsRequest.DeleteAclsFilter(
                resource_type_filter=ResourceType.TOPIC,
                resource_name_filter=GUARDED,
                pattern_type_filter=PatternType.LITERAL,
                principal_filter=EVERYBODY,
                host_filter=None,
                operation=Operation.WRITE,
                permission_type=Permission.ALLOW,
            )
        ]
    )


def write(value: bytes) -> ProduceRequest:
    batch = build_batch([Record(timestamp=0, value=value)])
    data = ProduceRequest.TopicProduceData.PartitionProduceData(index=0, records=bytes(batch))
    topic = ProduceRequest.TopicProduceData(name=GUARDED, partition_data=[data])
    return ProduceRequest(acks=1, timeout_ms=3000, topic_data=[topic])
