"""The end-to-end probe: records through an own topic of each cluster, and how long they take.

In: clients of clusters. Out: kminion's metrics `kminion_end_to_end_*`. A record goes to each partition at
each interval; it is received by a consumer of the same process, and its offset is committed. A record that
was acknowledged and does not come back in time is lost. Does not know: lag.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.groups import GroupDescription
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer, ConsumerSettings
from barnabas.client.core.errors import ClientError
from barnabas.client.core.topology import TopicPartition
from barnabas.client.producer import Producer, ProducerSettings
from barnabas.monitor.lag.groups import PROBE_GROUPS
from barnabas.monitor.lag_service.cluster_watch import WatchSettings
from barnabas.monitor.lag_service.repeating import Jobs
from barnabas.protocol import ErrorCode, KafkaError

log = logging.getLogger("barnabas.lag")

POLL_MS = 500.0
COMMIT_S = 5.0
TOPIC_S = 30.0
OUTSTANDING_MAX = 10_000


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    topic: str = "kminion-end-to-end"
    interval_s: float = 1.0
    roundtrip_s: float = 20.0
    ack_s: float = 5.0
    replication_factor: int = 1


def buckets(largest_s: float) -> tuple[float, ...]:
    """From 5 ms on, each twice the one before, up to the largest."""
    count = max(frexp(largest_s * 100)[1] - 1, 0) + 3
    return tuple(0.005 * 2**index for index in range(count))


class ProbeMetrics:
    """kminion's counters and histograms; with several clusters each has a label `cluster` in front."""

    def __init__(self, settings: ProbeSettings, prefix: str, has_clusters: bool) -> None:
        self.registry = CollectorRegistry()
        self._has_clusters = has_clusters
        partition, coordinator = ("partition_id",), ("coordinator_id",)
        name = f"{prefix}_end_to_end"

        def counter(short: str, text: str, labels: tuple[str, ...]) -> Counter:
            return Counter(f"{name}_{short}", text, self._labels(labels), registry=self.registry)

        def histogram(short: str, text: str, labels: tuple[str, ...], largest_s: float) -> Histogram:
            return Histogram(
                f"{name}_{short}",
                text,
                self._labels(labels),
                registry=self.registry,
                buckets=buckets(largest_s),
            )

        self.in_flight = Gauge(
            f"{name}_messages_produced_in_flight",
            "Records that are not acknowledged yet.",
            self._labels(partition),
            registry=self.registry,
        )
        self.produced = counter("messages_produced_total", "Records sent.", partition)
        self.failed = counter("messages_produced_failed_total", "Records not acknowledged.", partition)
        self.received = counter("messages_received_total", "Records that came back in time.", partition)
        self.lost = counter("messages_lost_total", "Records that did not come back in time.", partition)
        self.commits = counter("offset_commits_total", "Commits of offsets.", coordinator)
        self.commits_failed = counter(
            "offset_commits_failed_total", "Commits that were refused.", (*coordinator, "reason")
        )
        self.produce_s = histogram(
            "produce_latency_seconds", "Time to the acknowledgement.", partition, settings.ack_s
        )
        self.roundtrip_s = histogram(
            "roundtrip_latency_seconds", "Time until the record came back.", partition, settings.roundtrip_s
        )
        self.commit_s = histogram("offset_commit_latency_seconds", "Time of a commit.", coordinator, COMMIT_S)

    def _labels(self, own: tuple[str, ...]) -> tuple[str, ...]:
        return ("cluster", *own) if self._has_clusters else own

    def values(self, cluster: str, *own: object) -> tuple[str, ...]:
        found = tuple(map(str, own))
        return (cluster, *found) if self._has_clusters else found


class Probe:
    """The probe of one cluster."""

    def __init__(self, watch: WatchSettings, settings: ProbeSettings, metrics: ProbeMetrics) -> None:
        self.jobs = Jobs(f"{watch.name}: probe", log)
        self._name = watch.name
        self._settings = settings
        self._metrics = metrics
        self._id = str(uuid.uuid4())
        self._group = f"{PROBE_GROUPS}-{self._id}"
        self._client = Cluster(
            watch.bootstrap, client_id=watch.client_id, security=watch.security, waits_for_bootstrap=True
        )
        self._admin = Admin(self._client)
        self._producer = Producer(
            self._client,
            ProducerSettings(
                delivery_timeout_ms=round(settings.ack_s * 1000) + 2_000,
                block_ms_max=round(settings.ack_s * 1000),
            ),
        )
        self._outstanding: dict[str, tuple[int, float]] = {}  # by record id: partition, time of sending
        self._consumer: Consumer | None = None
        self._partitions = 0
        self._is_outdated = False  # the topic has other partitions than those that are read
        self._sending: set[asyncio.Task[None]] = set()
        self._committed: dict[TopicPartition, int] = {}

    def start(self) -> None:
        self.jobs.start("receiving", self._receive, 0.0)
        self.jobs.start("sending", self._send, self._settings.interval_s)
        self.jobs.start("committing", self._commit, COMMIT_S, at_once=False)
        self.jobs.start("its topic", self._look_at_topic, TOPIC_S, at_once=False)

    async def stop(self) -> None:
        await self.jobs.stop()
        for task in list(self._sending):
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
        if self._consumer is not None:
            await self._consumer.close()
        if self._committed:
            await self.jobs.run("leaving", self._forget_group)
        await self._client.close()

    async def _forget_group(self) -> None:
        async with asyncio.timeout(COMMIT_S):
            await self._admin.delete_groups([self._group])

    async def _make_topic(self) -> None:
        """Make the topic with a partition for each broker, or take the one that is there."""
        nodes = len((await self._client.retrying(self._client.refresh)).nodes)
        topic = NewTopic(self._settings.topic, max(nodes, 1), self._settings.replication_factor)
        try:
            await self._admin.create_topic(topic)
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    async def _look_at_topic(self) -> None:
        """Give the topic a partition for each broker, and notice when it was deleted or made by others."""
        name = self._settings.topic
        topology = await self._client.retrying(lambda: self._client.refresh([name]))
        known = topology.topics.get(name)
        count = known.partition_count if known is not None and not known.error_code else 0
        if 0 < count < len(topology.nodes):
            await self._admin.create_partitions({name: len(topology.nodes)})
            count = len(topology.nodes)
        self._is_outdated = self._consumer is not None and count != self._partitions

    async def _receive(self) -> None:
        if self._consumer is not None and self._is_outdated:
            await self._consumer.close()
            self._consumer, self._partitions, self._is_outdated = None, 0, False
        if self._consumer is None:
            await self._make_topic()
            count = await self._client.partitions_of(self._settings.topic)
            consumer = Consumer(self._client, ConsumerSettings())
            places = [TopicPartition(self._settings.topic, index) for index in range(count)]
            await consumer.assign_at(places, OffsetSpec.LATEST)
            self._consumer, self._partitions = consumer, count
        for record in await self._consumer.poll(POLL_MS):
            self._arrived(record.partition, record.value)
        self._count_lost()

    def _arrived(self, partition: int, value: bytes | None) -> None:
        try:
            message = json.loads(value or b"{}")
        except ValueError:
            return  # somebody else writes to the topic
        if not isinstance(message, dict) or message.get("minionID") != self._id:
            return
        sent = self._outstanding.pop(str(message.get("messageID")), None)
        if sent is not None:
            labels = self._metrics.values(self._name, partition)
            self._metrics.received.labels(*labels).inc()
            self._metrics.roundtrip_s.labels(*labels).observe(time.monotonic() - sent[1])

    def _count_lost(self) -> None:
        limit = time.monotonic() - self._settings.roundtrip_s
        for message, (partition, sent_s) in list(self._outstanding.items()):
            if sent_s > limit:
                return  # the oldest come first
            del self._outstanding[message]
            self._metrics.lost.labels(*self._metrics.values(self._name, partition)).inc()

    async def _send(self) -> None:
        if len(self._outstanding) < OUTSTANDING_MAX:
            for partition in range(self._partitions):
                task = asyncio.create_task(self._send_one(partition))
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)

    async def _send_one(self, partition: int) -> None:
        metrics, labels = self._metrics, self._metrics.values(self._name, partition)
        message = str(uuid.uuid4())
        body = {"minionID": self._id, "messageID": message, "createdUtcNs": time.time_ns()}
        began = time.monotonic()
        self._outstanding[message] = (partition, began)
        metrics.in_flight.labels(*labels).inc()
        metrics.failed.labels(*labels)
        metrics.lost.labels(*labels)
        try:
            value = json.dumps(body, separators=(",", ":")).encode()
            await (await self._producer.send(self._settings.topic, value, partition=partition))
            metrics.produce_s.labels(*labels).observe(time.monotonic() - began)
        except (KafkaError, ClientError) as error:
            self._outstanding.pop(message, None)
            metrics.failed.labels(*labels).inc()
            log.debug("%s: a record of the probe failed: %s", self._name, error)
        finally:
            metrics.in_flight.labels(*labels).dec()
            metrics.produced.labels(*labels).inc()

    async def _commit(self) -> None:
        if self._consumer is None or not self._partitions:
            return
        positions = dict(self._consumer.positions)
        began = time.monotonic()
        found = await self._admin.alter_offsets(self._group, positions)
        seconds = time.monotonic() - began
        self._committed = positions
        described = (await self._admin.describe_groups([self._group]))[self._group]
        node = described.coordinator.id if isinstance(described, GroupDescription) else -1
        labels = self._metrics.values(self._name, node)
        self._metrics.commits.labels(*labels).inc()
        self._metrics.commit_s.labels(*labels).observe(seconds)
        for error in {each.code.name for each in found.values() if each is not None}:
            self._metrics.commits_failed.labels(*labels, error).inc()


class Probes:
    """The probes of all clusters; without settings there are none."""

    def __init__(self, watches: Sequence[WatchSettings], settings: ProbeSettings | None, prefix: str) -> None:
        self._metrics: ProbeMetrics | None = None
        self._probes: list[Probe] = []
        if settings is not None:
            self._metrics = metrics = ProbeMetrics(settings, prefix, len(watches) > 1)
            self._probes = [Probe(each, settings, metrics) for each in watches]

    def start(self) -> None:
        for probe in self._probes:
            probe.start()

    async def stop(self) -> None:
        await asyncio.gather(*(probe.stop() for probe in self._probes))

    def text(self) -> bytes:
        return b"" if self._metrics is None else generate_latest(self._metrics.registry)
