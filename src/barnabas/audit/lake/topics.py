"""The audit of Spark's source and sink: tasks count what they read and write.

In: timestamps of rows, as tasks see them. Out: count messages. A task that reads names the range of offsets
that it counted, so a task that runs again counts nothing twice. A task that writes stores its counts behind
its rows, in the same transaction if it has one: they are committed together, or not at all.
Does not know: queries.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.audit.core.buckets import WIDTH_MS, check_width
from barnabas.audit.core.messages import ENTRIES_MAX, CountMessage, StreamKind, encode
from barnabas.audit.core.tiers import PRODUCER
from barnabas.audit.core.window import Window
from barnabas.audit.counters.audit_counter import AuditSettings
from barnabas.audit.counters.audit_topic import AUDIT_TOPIC, ensure_topic, is_counted
from barnabas.audit.lake.contents import Bucketed, Contents, Numbers, by_bucket, contents_of
from barnabas.client.admin.admin import Admin
from barnabas.client.blocking import run
from barnabas.protocol import uuid as topic_ids
from barnabas.spark.sink import write_rows
from barnabas.spark.sink_options import SinkOptions

if TYPE_CHECKING:
    from barnabas.spark.basics.cluster import WorkerCluster
    from barnabas.spark.basics.settings import ClientSettings
    from barnabas.spark.reading.fetcher import OffsetRange
    from barnabas.spark.writing.encoding import Encoded

NAMES = ("tier", "topic", "application", "bucket.ms", "sums")
CELLS_MAX = ENTRIES_MAX - 1  # the counts of a range fit one message
CLASS = "barnabas.audit.lake.topics.TopicAudit"


def audited(tier: str = PRODUCER, **settings: str) -> dict[str, str]:
    """Options that make the source or the sink count: `.options(**audited(consumer("revenue")))`."""
    return {"interceptors": CLASS, "interceptor.tier": tier} | {
        f"interceptor.{name.replace('_', '.')}": value for name, value in settings.items()
    }


class TopicAudit:
    """The interceptor of the source and the sink."""

    def __init__(self, settings: Mapping[str, str], client: ClientSettings) -> None:
        unknown = sorted(set(settings) - set(NAMES))
        if unknown:
            raise ValueError(f"there is no setting interceptor.{unknown[0]}: {', '.join(NAMES)}")
        if not settings.get("tier"):
            raise ValueError("interceptor.tier is missing: the tier that is counted, consumer/revenue say")
        self.tier = settings["tier"]
        self.settings = AuditSettings(
            client.bootstrap_servers,
            topic=settings.get("topic", AUDIT_TOPIC),
            application=settings.get("application", client.client_id),
            width_ms=width_of(settings["bucket.ms"]) if "bucket.ms" in settings else WIDTH_MS,
            sums=has_sums(settings),
        )

    @staticmethod
    def columns(settings: Mapping[str, str]) -> tuple[str, ...]:
        return ("timestamp", "key", "value") if has_sums(settings) else ("timestamp",)

    def reading(self, cluster: WorkerCluster, asked: OffsetRange) -> RangeCounts:
        return RangeCounts(self, cluster, asked)

    def writing(self, cluster: WorkerCluster) -> TaskCounts:
        return TaskCounts(self, cluster)


class RangeCounts:
    """Counts the rows of one range of offsets."""

    def __init__(self, audit: TopicAudit, cluster: WorkerCluster, asked: OffsetRange) -> None:
        self._audit = audit
        self._cluster = cluster
        self._asked = asked
        self._window = Window(audit.settings.width_ms, CELLS_MAX)

    def read(self, rows: pa.RecordBatch) -> None:
        stamps = milliseconds(rows.column("timestamp"))
        has_sums = self._audit.settings.sums
        contents = contents_of((rows.column("key"), rows.column("value")), stamps) if has_sums else None
        add(self._window, (self._asked.topic, self._asked.partition), stamps, contents=contents)

    def ended(self) -> None:
        settings, asked = self._audit.settings, self._asked
        if asked.stop <= asked.start or not is_counted(asked.topic, settings.topic):
            return
        cluster_id = run(Admin(self._cluster).describe_cluster()).cluster_id or ""
        entries = [each for _, some in self._window.entries() for each in some]
        message = CountMessage(
            self._audit.tier,
            asked.topic,
            settings.host,
            f"{cluster_id}/{topic_ids.to_text(self._topic_id())}-{asked.partition}",
            StreamKind.OFFSETS,
            asked.start,
            asked.stop,
            int(time.time() * 1000),
            tuple(entries),
            settings.width_ms,
            settings.application,
        )
        publish(self._cluster, settings.topic, message)

    def _topic_id(self) -> bytes:
        return (
            self._asked.topic_id or run(self._cluster.topics([self._asked.topic]))[self._asked.topic].topic_id
        )


class TaskCounts:
    """Counts the rows that a task writes. Each attempt of a task is a stream of its own: if the attempt has
    a transaction that is aborted, nobody sees its counts; if it has none, its rows are there, and count."""

    def __init__(self, audit: TopicAudit, cluster: WorkerCluster) -> None:
        self._audit = audit
        self._cluster = cluster
        self._window = Window(audit.settings.width_ms)

    def acknowledged(self, batch: Encoded, append_time_ms: int) -> None:
        add_batch(self._window, batch, append_time_ms, has_sums=self._audit.settings.sums)

    def rows(self) -> pa.Table | None:
        settings = self._audit.settings
        stream = uuid.uuid4().hex
        now_ms = int(time.time() * 1000)
        messages = [
            encode(
                CountMessage(
                    self._audit.tier,
                    topic,
                    settings.host,
                    stream,
                    StreamKind.BATCHES,
                    number,
                    number + 1,
                    now_ms,
                    entries,
                    settings.width_ms,
                    settings.application,
                )
            )
            for number, (topic, entries) in enumerate(self._window.entries())
            if is_counted(topic, settings.topic)
        ]
        if not messages:
            return None
        run(ensure_topic(self._cluster, settings.topic))
        return records(settings.topic, messages, stream)


def publish(cluster: WorkerCluster, topic: str, message: CountMessage) -> None:
    """Write a message, as the sink writes rows."""
    run(ensure_topic(cluster, topic))
    [rows] = records(topic, [encode(message)], message.stream).to_batches()
    write_rows(SinkOptions(cluster.client), iter([rows]), None)


def records(topic: str, messages: Sequence[bytes], key: str) -> pa.Table:
    """Rows for the audit topic."""
    count = len(messages)
    return pa.table(
        {
            "topic": pa.array([topic] * count),
            "key": pa.array([key.encode()] * count, pa.binary()),
            "value": pa.array(messages, pa.binary()),
        }
    )


def milliseconds(timestamps: pa.Array) -> Numbers:
    """Of timestamps in microseconds; -1 stays -1."""
    values = pc.cast(timestamps, pa.int64()).to_numpy(zero_copy_only=False)
    unit = timestamps.type.unit
    factor = {"s": 1000, "ms": 1}.get(unit)
    found: Numbers = values * factor if factor else values // {"us": 1000, "ns": 1_000_000}[unit]
    return found


def add(
    window: Window,
    place: tuple[str, int],
    stamps: Numbers,
    now_ms: int | None = None,
    contents: Contents | None = None,
) -> None:
    """Count rows of one place by bucket: the delay of its rows is that of their mean timestamp."""
    if not len(stamps):
        return
    seen_ms = int(time.time() * 1000) if now_ms is None else now_ms
    for stamp, count, content in by_bucket(stamps, window.width_ms, contents):
        window.add(*place, stamp, seen_ms, count, content=content)


def add_batch(window: Window, batch: Encoded, append_time_ms: int, *, has_sums: bool) -> None:
    """Count the rows of a batch that the brokers have."""
    seen_ms = int(time.time() * 1000)
    for stamp, count, content in counts_of(batch, append_time_ms, window.width_ms, has_sums=has_sums):
        window.add(batch.where.topic, batch.where.partition, stamp, seen_ms, count, content=content)


def counts_of(batch: Encoded, append_time_ms: int, width_ms: int, *, has_sums: bool) -> list[Bucketed]:
    """The rows of a batch by bucket. `append_time_ms` is the time that the topic gave them, or -1."""
    rows, piece = batch.rows
    stamps: Numbers = rows.timestamps[piece]
    if append_time_ms >= 0:
        stamps = np.full(len(piece), append_time_ms, np.int64)
    contents = None
    if has_sums:
        columns = (rows.keys.value(row) for row in piece), (rows.values.value(row) for row in piece)
        keys, values = (pa.array(each, pa.large_binary()) for each in columns)
        contents = contents_of((keys, values), stamps)
    return by_bucket(stamps, width_ms, contents)


def has_sums(settings: Mapping[str, str]) -> bool:
    return settings.get("sums", "false").strip().lower() == "true"


def width_of(text: str) -> int:
    try:
        width = int(text)
    except ValueError:
        raise ValueError(f"interceptor.bucket.ms is {text!r}, a number of milliseconds is needed") from None
    check_width(width)
    return width
