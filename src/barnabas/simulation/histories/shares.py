"""A history of share groups: producers, some of them transactional, and members that share the partitions.

Checks (see `share_checks`): no record is lost, none is held by two members at once, delivery counts are
honest, a record whose end was confirmed is never delivered again, records of aborted transactions never to a
group that reads committed ones, first deliveries are in order. Progress: after the faults, every group passes
every record.
"""

from __future__ import annotations

import asyncio
from functools import partial

from barnabas.client.core.address import Address
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.records.record import Record, build_batch
from barnabas.simulation.histories.reading import Reader
from barnabas.simulation.histories.share_member import ShareGroup, ShareGroupMember
from barnabas.simulation.histories.stage import SYNCED, WRITTEN, Stage, create_topic, kinds_of
from barnabas.simulation.histories.transactional_client import Fenced, TransactionalProducer
from barnabas.simulation.models.share_checks import SharedPartition, Tenure
from barnabas.simulation.models.transaction_checks import Epochs, Transactions
from barnabas.simulation.world.client import Job, SimulatedClient
from barnabas.simulation.world.faults import Kind, Plan, plan
from barnabas.simulation.world.history import Wrong
from barnabas.simulation.world.world import World, rng_of

TOPIC = "jobs"
SECONDS = 8.0
SECONDS_TO_RECOVER = 60.0
FAULTS_MAX = 10
FAULT_S_MEAN = 1.5
RETRY_S = 0.1
LOOK_S = 0.4
COMMIT_CHANCE = 0.6
BY_NAME_MAX = 12  # the last version of Produce that names topics
GROUP_RESOURCE, SET = 32, 0  # a type of resource, and an operation of IncrementalAlterConfigs
SETTINGS = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.assignment.interval.ms": "0",
    "group.share.initialize.retry.interval.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


class SharesHistory:
    name = "shares"
    seconds_max = 900.0
    seconds = SECONDS
    pauses_s: tuple[float, ...] = (0.03, 0.1, 0.3)  # between batches of a producer

    def __init__(self, seed: int) -> None:
        rng = rng_of(seed, "plan")
        self.promise = rng.choice((WRITTEN, SYNCED, SYNCED))
        self.partitions = rng.randrange(1, 4)
        self.isolations = [rng.choice(("read_committed", "read_uncommitted"))]
        self.isolations += ["read_committed"] * rng.randrange(2)
        self.sizes = [rng.randrange(1, 5) for _ in self.isolations]
        self.producers = rng.randrange(1, 3)
        self.writers = rng.randrange(0, 3)
        self.pause_s = rng.choice(self.pauses_s)
        self.deliveries_max = rng.choice((2, 3, 5, 5, 10))
        self.lock_s = rng.choice((1.0, 1.5, 3.0))
        self.locks_max = rng.choice((100, 2000))
        self.updates_per_snapshot = rng.choice((0, 2, 10, 500))
        self.prunes_ms = rng.choice((300, 300_000))
        self.faults: Plan = plan(
            rng,
            kinds_of(self.promise, rng) + 3 * (Kind.PAUSE_CLIENT, Kind.KILL_CLIENT),
            until_s=self.seconds,
            count_max=FAULTS_MAX,
            duration_s_mean=FAULT_S_MEAN,
        )
        self.transactions = Transactions()
        self.epochs = Epochs()
        self.produced: list[dict[int, bytes]] = []  # by partition, without transactions
        self.groups: list[ShareGroup] = []
        self._is_over = False
        self._done: set[str] = set()
        self._stage: Stage

    def make_stage(self, world: World, properties: dict[str, str]) -> Stage:
        return Stage(world, properties)

    def _settings(self) -> dict[str, str]:
        return SETTINGS | {
            "group.share.record.lock.duration.ms": str(int(self.lock_s * 1000)),
            "group.share.delivery.count.limit": str(self.deliveries_max),
            "group.share.partition.max.record.locks": str(self.locks_max),
            "share.coordinator.snapshot.update.records.per.snapshot": str(self.updates_per_snapshot),
            "share.coordinator.state.topic.prune.interval.ms": str(self.prunes_ms),
        }

    async def run(self, world: World, faults: Plan) -> dict[str, int]:
        self.produced = [{} for _ in range(self.partitions)]
        stage = self._stage = self.make_stage(world, {**self._settings(), **self.promise.properties})
        await stage.open()
        topic_id = await create_topic(stage, TOPIC, self.partitions)
        self.groups = [self._group(index, topic_id) for index in range(len(self.isolations))]
        stage.add("administrator", self._configure)
        await stage.until(lambda: "administrator" in self._done, 60, "the groups are configured")
        await asyncio.sleep(1.0)  # until all brokers know it
        members = [
            stage.add(f"{group.name}-{number}", partial(self._member, group))
            for group, size in zip(self.groups, self.sizes, strict=True)
            for number in range(size)
        ]
        producers = [stage.add(f"producer-{index}", self._produce) for index in range(self.producers)]
        producers += [stage.add(f"writer-{n}", self._writer(f"writer-{n}")) for n in range(self.writers)]
        watcher = stage.add("watcher", self._watch)
        await stage.inject_faults(faults, self.seconds, [*members, *producers, watcher])
        self._is_over = True
        for group in self.groups:
            group.is_calm = True
        names = {client.host for client in producers}
        await stage.until(lambda: names <= self._done, SECONDS_TO_RECOVER, "producers end their last batch")
        await self.settle()
        stage.add("judge", self._judge)
        await stage.until(lambda: "judge" in self._done, SECONDS_TO_RECOVER, "all records are passed")
        shared = [partition for group in self.groups for partition in group.partitions]
        return {
            "lives": stage.node.lives,
            "power losses": stage.node.power_losses,
            "deliveries": sum(each.deliveries for each in shared),
            "deliveries again": sum(each.redeliveries for each in shared),
            "acknowledgements refused": sum(each.refusals for each in shared),
        }

    async def settle(self) -> None:
        """Wait for the conditions under which all records are read and compared."""

    def _group(self, index: int, topic_id: bytes) -> ShareGroup:
        name = f"{self.isolations[index]}-{index}"
        now = self._stage.world.loop.time
        shared = [
            SharedPartition(f"{name} {TOPIC}-{partition}", now, self.deliveries_max, self.lock_s)
            for partition in range(self.partitions)
        ]
        tenure = partial(self._tenure, name, topic_id)
        saw = self._saw_committed if self.isolations[index] == "read_committed" else self._saw
        return ShareGroup(name, TOPIC, topic_id, shared, self.lock_s, tenure, saw)

    def _tenure(self, group_id: str, topic_id: bytes, address: Address, partition: int) -> Tenure | None:
        """The share partition in the memory of a broker that is up, as an object to compare."""
        node = self._stage.node_at(address.host)
        if node is None or node.node is None:
            return None
        for share in node.node.broker.shares:
            shared = share.partition
            if (share.group, shared.topic_id, shared.index) == (group_id, topic_id, partition):
                return share
        return None

    async def _configure(self, client: SimulatedClient) -> None:
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        for group, isolation in zip(self.groups, self.isolations, strict=True):
            configs = {"share.auto.offset.reset": "earliest", "share.isolation.level": isolation}
            request = IncrementalAlterConfigsRequest(
                resources=[
                    resource(
                        resource_type=GROUP_RESOURCE,
                        resource_name=group.name,
                        configs=[
                            resource.AlterableConfig(name=name, config_operation=SET, value=value)
                            for name, value in configs.items()
                        ],
                    )
                ]
            )
            await client.ask_until_answered(
                request, IncrementalAlterConfigsResponse, lambda found: not found.responses[0].error_code
            )
        self._done.add(client.host)

    # -- members -----------------------------------------------------------------------------------

    async def _member(self, group: ShareGroup, client: SimulatedClient) -> None:
        await ShareGroupMember(client, group).run()
        self._done.add(client.host)

    def _saw_committed(self, value: bytes) -> None:
        if not is_plain(value):
            self.transactions.saw(value)

    def _saw(self, value: bytes) -> None:
        """A group that reads all records may see those of open and aborted transactions."""

    # -- producers ---------------------------------------------------------------------------------

    async def _produce(self, client: SimulatedClient) -> None:
        """Write batches once: one without a response may be there or not."""
        number = 0
        while not self._is_over:
            number += 1
            index = client.rng.randrange(self.partitions)
            values = [
                f"plain {client.host}/{client.lives}/{number}/{n}".encode()
                for n in range(client.rng.choice((1, 1, 3, 12)))
            ]
            now_ms = self._stage.world.clock.now_ms()
            batch = build_batch([Record(timestamp=now_ms, value=value) for value in values])
            data = ProduceRequest.TopicProduceData
            given = data.PartitionProduceData(index=index, records=bytes(batch))
            request = ProduceRequest(
                acks=-1, timeout_ms=3000, topic_data=[data(name=TOPIC, partition_data=[given])]
            )
            response = await client.ask(request, ProduceResponse, version_max=BY_NAME_MAX)
            result = response.responses[0].partition_responses[0] if response is not None else None
            if result is not None and not result.error_code:
                self.produced[index].update(enumerate(values, result.base_offset))
            await asyncio.sleep(client.rng.expovariate(1 / self.pause_s))
        self._done.add(client.host)

    def _writer(self, transactional_id: str) -> Job:
        async def job(client: SimulatedClient) -> None:
            is_new = client.rng.random() < 0.5
            while not self._is_over:
                try:
                    producer = TransactionalProducer(
                        client, transactional_id, self.epochs, is_new=is_new, is_trusted=lambda: True
                    )
                    await producer.initialize()
                    while not self._is_over:
                        await self._write(client, producer)
                        await asyncio.sleep(client.rng.expovariate(1 / self.pause_s))
                except Fenced:
                    await asyncio.sleep(client.rng.expovariate(1.0))
            self._done.add(client.host)

        return job

    async def _write(self, client: SimulatedClient, producer: TransactionalProducer) -> None:
        transaction = self.transactions.begin()
        for step in range(client.rng.randrange(1, 4)):
            values = [transaction.value(f"{step}.{n}") for n in range(client.rng.randrange(1, 4))]
            await producer.write(TOPIC, client.rng.randrange(self.partitions), values)
        await producer.end(transaction, commits=client.rng.random() < COMMIT_CHANCE)

    # -- start offsets -----------------------------------------------------------------------------

    async def _watch(self, client: SimulatedClient) -> None:
        while not self._is_over:
            for group in self.groups:
                for index, (start_offset, _) in (await self._describe(client, group)).items():
                    if start_offset >= 0:
                        group.partitions[index].began_at(start_offset, self.produced[index])
            await asyncio.sleep(LOOK_S)

    async def _describe(self, client: SimulatedClient, group: ShareGroup) -> dict[int, tuple[int, int]]:
        """The start offset and the lag of each partition, as far as they are known."""
        part = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
        topic = part.DescribeShareGroupOffsetsRequestTopic(
            topic_name=TOPIC, partitions=list(range(self.partitions))
        )
        request = DescribeShareGroupOffsetsRequest(groups=[part(group_id=group.name, topics=[topic])])
        response = await client.ask(request, DescribeShareGroupOffsetsResponse)
        if response is None or response.groups[0].error_code:
            return {}
        return {
            each.partition_index: (each.start_offset, each.lag)
            for each in response.groups[0].topics[0].partitions
            if not each.error_code
        }

    async def _judge(self, client: SimulatedClient) -> None:
        """Read the log, wait until every group has passed its records, and compare."""
        for group, isolation in zip(self.groups, self.isolations, strict=True):
            records: list[dict[int, bytes]] = []
            ends = []
            for index in range(self.partitions):
                reader = Reader(client, TopicPartition(TOPIC, index), isolation == "read_committed")
                records.append(await self._read(reader))
                ends.append(reader.high_watermark)
            while not self._is_through(await self._describe(client, group), ends):
                await asyncio.sleep(RETRY_S)
            group.is_over = True
            names = {f"{group.name}-{number}" for number in range(self.sizes[self.groups.index(group)])}
            while not names <= self._done:
                await asyncio.sleep(RETRY_S)
            for index, partition in enumerate(group.partitions):
                self._check_produced(index, records[index])
                partition.compare(records[index])
        self._done.add(client.host)

    @staticmethod
    def _is_through(described: dict[int, tuple[int, int]], ends: list[int]) -> bool:
        """Whether the group has passed all records. Its last start offset may not be stored, the lag is. A
        partition without records may have no state."""
        return all(not end or described.get(index, (-1, -1))[1] == 0 for index, end in enumerate(ends))

    async def _read(self, reader: Reader) -> dict[int, bytes]:
        """All records of a partition, when no transaction is open."""
        found: dict[int, bytes] = {}
        while not (reader.is_at_end and reader.last_stable_offset == reader.high_watermark):
            records = await reader.fetch(0)
            found |= {record.offset: record.value or b"" for record in records or ()}
            if not records:
                await asyncio.sleep(RETRY_S)
        return found

    def _check_produced(self, index: int, found: dict[int, bytes]) -> None:
        for offset, value in self.produced[index].items():
            if found.get(offset) != value:
                raise Wrong(f"{value!r} was acknowledged at {offset} of {index} and is gone")


def is_plain(value: bytes) -> bool:
    """Whether a value belongs to no transaction."""
    return value.startswith(b"plain ")
