"""The audit of tasks: records that a sink has flushed, and records that a source has written.

In: records as a sink's consumer gave them, offsets that were flushed; tables that a source wrote. Out: count
messages. A sink names the ranges of offsets that it counted: records that come again after a failure count
once. A source counts like any producer. Counts of a sink wait in memory while brokers are away.
Does not know: connectors, REST.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.audit.core.messages import ENTRIES_MAX, CountMessage, StreamKind
from barnabas.audit.core.tiers import PRODUCER, sink
from barnabas.audit.core.window import ABORTED, COUNT, Window
from barnabas.audit.counters.audit_counter import AuditCounter, AuditSettings
from barnabas.audit.counters.audit_topic import AUDIT_TOPIC, is_counted
from barnabas.audit.counters.publisher import Publisher
from barnabas.audit.lake.contents import Bucketed, by_bucket, contents_of
from barnabas.audit.lake.topics import add_batch
from barnabas.client.admin.admin import Admin
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.errors import ClientError
from barnabas.client.core.topology import TopicPartition
from barnabas.connect.tasks.client_properties import connection_settings
from barnabas.connect.tasks.consuming import on_loop
from barnabas.connect.tasks.polled import Polled
from barnabas.protocol import KafkaError, uuid
from barnabas.protocol.types import NULL_UUID
from barnabas.spark.writing.encoding import Encoded

log = logging.getLogger("barnabas.connect")

ENABLE, TOPIC, SUMS = "barnabas.audit.enable", "barnabas.audit.topic", "barnabas.audit.sums"
CELLS_MAX = ENTRIES_MAX - 1
MESSAGES_MAX = 10_000
SEND_S = 5.0


def audit_settings(worker: Mapping[str, str], properties: Mapping[str, str]) -> AuditSettings | None:
    """From a worker's properties and those of a task's client; None if the worker does not count."""
    if not is_true(worker, ENABLE):
        return None
    topic = worker.get(TOPIC, AUDIT_TOPIC)
    client = connection_settings(properties)
    return AuditSettings(
        client.bootstrap_servers,
        topic,
        application=client.client_id,
        security=client.client_security(),
        sums=has_sums(worker),
    )


def has_sums(worker: Mapping[str, str]) -> bool:
    return is_true(worker, ENABLE) and is_true(worker, SUMS)


def is_true(worker: Mapping[str, str], name: str) -> bool:
    return worker.get(name, "false").strip().lower() == "true"


@dataclass(frozen=True, slots=True)
class Counted:
    """Records of one partition between two offsets."""

    start: int
    end: int
    window: Window


class SinkAudit:
    """Counts of one sink task, for its thread."""

    def __init__(self, settings: AuditSettings, connector: str) -> None:
        self._settings = settings
        self._tier = sink(connector)
        self._delivered: dict[TopicPartition, deque[Counted]] = {}
        self._ready: deque[tuple[TopicPartition, bytes, Counted]] = deque(maxlen=MESSAGES_MAX)
        self._unsent: deque[CountMessage] = deque(maxlen=MESSAGES_MAX)
        self._cluster: Cluster | None = None
        self._publisher: Publisher | None = None
        self._cluster_id = ""

    def delivered(self, polled: Iterable[Polled]) -> None:
        """Records that the task has taken."""
        for each in polled:
            stamps = each.raw.timestamps.to_numpy(zero_copy_only=False)
            columns = (each.raw.keys, each.raw.values)
            contents = contents_of(columns, stamps) if self._settings.sums else None
            found = by_bucket(stamps, self._settings.width_ms, contents)
            self.has(each.where, each.first, each.next_offset, found)

    def has(self, where: TopicPartition, start: int, end: int, counts: Iterable[Bucketed]) -> None:
        """The task has taken the records between two offsets: timestamps, each with a number of records and
        the sum of their contents, if it is known."""
        if end <= start or not is_counted(where.topic, self._settings.topic):
            return
        window, now_ms = Window(self._settings.width_ms, CELLS_MAX), int(time.time() * 1000)
        for stamp, count, content in counts:
            window.add(where.topic, where.partition, stamp, now_ms, count, content=content)
        self._delivered.setdefault(where, deque()).append(Counted(start, end, window))

    def flushed(self, offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, bytes]) -> None:
        """The task has everything below these offsets for good. Called before they are committed: if they
        are not, the same ranges are counted again, and count once."""
        for where, offset in offsets.items():
            pieces = self._delivered.get(where, deque())
            taken: list[Counted] = []
            while pieces and pieces[0].end <= offset:
                taken.append(pieces.popleft())
            topic_id = topic_ids.get(where.topic, NULL_UUID)  # unknown: the topic was deleted just now
            self._ready += [(where, topic_id, each) for each in joined(taken, self._settings.width_ms)]
        if not self._ready and not self._unsent:
            return
        try:
            on_loop(asyncio.wait_for(self._publish(), SEND_S))
        except (KafkaError, ClientError, TimeoutError, OSError) as error:
            log.warning(
                "counts of %s cannot be sent to %s: %s. They are kept",
                self._tier,
                self._settings.topic,
                error,
            )

    def rewound(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Records from these offsets on come again."""
        for where, offset in offsets.items():
            pieces = self._delivered.get(where)
            while pieces and pieces[-1].end > offset:
                pieces.pop()

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        for where in partitions:
            self._delivered.pop(where, None)

    async def _publish(self) -> None:
        settings = self._settings
        if self._cluster is None or self._publisher is None:
            options = {} if settings.security is None else {"security": settings.security}
            self._cluster = Cluster(
                parse_bootstrap(settings.bootstrap),
                client_id="barnabas-audit",
                **options,  # type: ignore[arg-type]
            )
            self._publisher = Publisher(self._cluster, settings.topic)
        if not self._cluster_id:
            self._cluster_id = (await Admin(self._cluster).describe_cluster()).cluster_id or ""
        now_ms = int(time.time() * 1000)
        while self._ready:
            where, topic_id, counted = self._ready.popleft()
            entries = [each for _, some in counted.window.entries() for each in some]
            stream = f"{self._cluster_id}/{uuid.to_text(topic_id)}-{where.partition}"
            self._unsent.append(
                CountMessage(
                    self._tier,
                    where.topic,
                    settings.host,
                    stream,
                    StreamKind.OFFSETS,
                    counted.start,
                    counted.end,
                    now_ms,
                    tuple(entries),
                    settings.width_ms,
                    settings.application,
                )
            )
        await self._publisher.send(list(self._unsent))
        self._unsent.clear()

    def close(self) -> None:
        async def end() -> None:
            if self._publisher is not None:
                await self._publisher.close()
            if self._cluster is not None:
                await self._cluster.close()

        on_loop(end())


def joined(pieces: Iterable[Counted], width_ms: int) -> list[Counted]:
    """Ranges that touch each other as one."""
    found: list[Counted] = []
    for piece in pieces:
        if found and found[-1].end == piece.start:
            window = found[-1].window
            window.merge(piece.window, COUNT)
            found[-1] = Counted(found[-1].start, piece.end, window)
        else:
            found.append(piece)
    return found


class SourceAudit:
    """Counts of one source task: what its producer has for good. Offsets of the source are not counted."""

    def __init__(self, settings: AuditSettings, offsets_topic: str | None = None) -> None:
        self._offsets_topic = offsets_topic
        self._counter = AuditCounter(settings, PRODUCER)
        self._has_sums = settings.sums
        self._window = Window(settings.width_ms)

    def acknowledged(self, batch: Encoded, append_time_ms: int) -> None:
        """Rows that the brokers have."""
        if batch.where.topic != self._offsets_topic:
            add_batch(self._window, batch, append_time_ms, has_sums=self._has_sums)

    def has(self, topic: str, partition: int, counts: Iterable[Bucketed]) -> None:
        """Rows that somebody else has written: timestamps, each with a number of rows and the sum of their
        contents, if it is known."""
        now_ms = int(time.time() * 1000)
        for stamp, count, content in counts:
            self._window.add(topic, partition, stamp, now_ms, count, content=content)

    def settled(self, *, is_aborted: bool = False) -> None:
        """Brokers have acknowledged all rows, or the transaction with them has ended."""
        window, self._window = self._window, Window(self._counter.settings.width_ms)
        if window:
            self._counter.add_window(window, ABORTED if is_aborted else COUNT)

    def close(self) -> None:
        self._counter.close()
