"""The config, status and offset topics: made, checked, read from their start, followed and written.

In: a cluster, names of topics. Out: each record once, in the order of its partition. A config topic with
several partitions, or topics that are not compacted, are refused: they lose configurations.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.admin.topics import NewTopic
from barnabas.client.consumer import Consumer, ConsumerSettings, OnOutOfRange
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import ClientError, NoTopic
from barnabas.client.core.fetching import ConsumerRecord, DamagedBatch
from barnabas.client.core.topology import TopicPartition
from barnabas.client.producer import NewRecord, Producer, ProducerSettings
from barnabas.connect.herder.errors import Refused
from barnabas.protocol import ErrorCode, KafkaError, ProtocolError

log = logging.getLogger("barnabas.connect")

POLL_MS = 500.0
RETRY_S = 0.2
READING = ConsumerSettings(fetch_wait_ms_max=200, read_committed=True, on_out_of_range=OnOutOfRange.EARLIEST)
WRITING = ProducerSettings(acks=-1, idempotence=False)
Bytes = tuple[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class InternalTopic:
    setting: str  # config.storage, status.storage, offset.storage
    name: str
    partitions: int
    replicas: int
    configs: Mapping[str, str]


def internal_topic(worker: Mapping[str, str], setting: str, partitions: int) -> InternalTopic:
    prefix = f"{setting}."
    own = {f"{prefix}topic", f"{prefix}partitions", f"{prefix}replication.factor"}
    configs = {
        name.removeprefix(prefix): value
        for name, value in worker.items()
        if name.startswith(prefix) and name not in own
    }
    return InternalTopic(
        setting,
        worker[f"{prefix}topic"],
        int(worker.get(f"{prefix}partitions", partitions)),
        int(worker.get(f"{prefix}replication.factor", "3")),
        configs,
    )


class InternalTopics:
    """Reads all topics with one consumer; `applied(setting, record)` gets each record."""

    def __init__(
        self,
        cluster: ClusterCore,
        topics: Sequence[InternalTopic],
        applied: Callable[[str, ConsumerRecord], None],
    ) -> None:
        self._cluster = cluster
        self._topics = {each.setting: each for each in topics}
        self._settings = {each.name: each.setting for each in topics}
        self._applied = applied
        self._consumer = Consumer(cluster, READING)
        self._producer = Producer(cluster, WRITING)
        self._advanced = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Make and check the topics, and read everything that is there now."""
        places = [place for topic in self._topics.values() for place in await self._ensured(topic)]
        await self._consumer.assign_at(places, OffsetSpec.EARLIEST)
        self._task = asyncio.create_task(self._follow())
        await self._reached(places)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._consumer.close()
        await self._producer.close()

    async def write(self, setting: str, records: Sequence[Bytes]) -> None:
        """Write records; returns when they are read back. Refused if the broker does not take them."""
        topic = self._topics[setting]
        count = await self._cluster.partitions_of(topic.name)
        partition = 0 if count == 1 else None
        found = await self._producer.send_all(
            topic.name, [NewRecord(partition, key, value) for key, value in records]
        )
        try:
            for each in found:
                if isinstance(each, KafkaError):
                    raise each
                await each.done
        except KafkaError as error:
            raise Refused(500, f"Error writing connector configuration to Kafka: {error}") from error
        await self.read_to_end(setting)

    async def send(self, setting: str, key: bytes, value: bytes | None) -> None:
        """Write a record without waiting for it to be read."""
        topic = self._topics[setting]
        await self._producer.send(topic.name, value, key)

    async def read_to_end(self, setting: str) -> None:
        name = self._topics[setting].name
        await self._reached([place for place in self._consumer.positions if place.topic == name])

    async def _reached(self, places: Sequence[TopicPartition]) -> None:
        ends = await Admin(self._cluster).list_offsets(
            dict.fromkeys(places, OffsetSpec.LATEST), read_committed=True
        )
        goals = {place: end.offset for place, end in ends.items() if not isinstance(end, KafkaError)}
        async with self._advanced:
            await self._advanced.wait_for(
                lambda: all(self._consumer.positions[place] >= goal for place, goal in goals.items())
            )

    async def _follow(self) -> None:
        while True:
            try:
                records = await self._consumer.poll(POLL_MS)
            except DamagedBatch as damaged:
                log.error("a part of an internal topic is skipped: %s", damaged)
                self._consumer.assign({damaged.where: damaged.next_offset})
                continue
            except (KafkaError, ClientError, ProtocolError) as error:
                log.warning("internal topics cannot be read at the moment: %s", error)
                await asyncio.sleep(RETRY_S)
                continue
            for record in records:
                self._applied(self._settings[record.topic], record)
            async with self._advanced:
                self._advanced.notify_all()

    async def _ensured(self, topic: InternalTopic) -> list[TopicPartition]:
        async def attempt() -> list[TopicPartition]:
            try:
                found = (await self._cluster.topics([topic.name]))[topic.name]
            except NoTopic:
                await self._create(topic)
                raise
            if topic.setting == "config.storage" and found.partition_count != 1:
                raise WrongTopic(
                    f"Topic '{topic.name}' supplied via the 'config.storage.topic' property is required to "
                    f"have a single partition, but found {found.partition_count} partitions."
                )
            await self._check_policy(topic)
            return [TopicPartition(topic.name, number) for number in range(found.partition_count)]

        return await self._cluster.retrying(attempt, patience=self._cluster.patience(60_000))

    async def _create(self, topic: InternalTopic) -> None:
        configs = {**topic.configs, "cleanup.policy": "compact"}
        new = NewTopic(topic.name, topic.partitions, topic.replicas, configs=configs)
        try:
            await Admin(self._cluster).create_topic(new)
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    async def _check_policy(self, topic: InternalTopic) -> None:
        resource = ConfigResource(ResourceType.TOPIC, topic.name)
        entries = (await Admin(self._cluster).describe_configs([resource]))[resource]
        policy = next((entry.value or "" for entry in entries if entry.name == "cleanup.policy"), "")
        if policy != "compact":
            raise WrongTopic(
                f"Topic '{topic.name}' supplied via the '{topic.setting}.topic' property is required to have "
                f"'cleanup.policy=compact' to guarantee consistency and durability, but found {policy!r}."
            )


class WrongTopic(ClientError):
    """A worker cannot work with the topic as it is."""
