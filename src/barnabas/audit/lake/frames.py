"""Counts of data frames: what a query read or wrote, what a zone of a lake holds, batch by batch.

In: rows with topic, partition, timestamp and the number of their batch; a tier; the name of the stream. Out:
count messages, one range for each batch. Executors group the rows, the driver sends the counts. Batches that
the audit topic has are not counted again, and a batch that is counted twice all the same counts once.
Does not know: which query or lake it is.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.audit.core.contents import MODULUS_MASK
from barnabas.audit.core.delays import Delays
from barnabas.audit.core.messages import ENTRIES_MAX, NO_OFFSET, CountMessage, Entry, StreamKind, Tally
from barnabas.audit.counters.audit_counter import AuditSettings
from barnabas.audit.counters.audit_topic import ensure_topic, is_counted
from barnabas.audit.counters.audit_topic_reader import AuditTopicReader
from barnabas.audit.counters.publisher import Publisher
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of columns that say where a row comes from."""

    topic: str = "topic"
    partition: str = "partition"
    timestamp: str = "timestamp"
    batch: str = "batch"
    offset: str = ""  # tells where a reader began, if the frame has it
    content: str = ""  # numbers of records' contents (`lake/contents.py`), if the frame has them


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one batch, topic, partition and bucket. Times are those of the rows that are counted."""

    batch: int
    topic: str
    partition: int
    bucket: int
    rows: int
    oldest: int = 0
    newest: int = 0
    dropped: int = 0
    first: int = NO_OFFSET  # the smallest offset
    content: int | None = None  # the sum of the rows' contents, modulo 2^64

    @property
    def place(self) -> tuple[int, str, int, int]:
        return self.batch, self.topic, self.partition, self.bucket


def grouped(frame: DataFrame, width_ms: int, columns: Columns, *others: str) -> DataFrame:
    """Rows counted by batch, topic, partition and bucket, and by other columns."""
    from pyspark.sql import functions as f

    stamp, width = f.col("_stamp"), f.lit(width_ms)
    offset = f.col(columns.offset) if columns.offset else f.lit(NO_OFFSET)
    content = f.col(columns.content) if columns.content else f.lit(None)
    return (
        frame.withColumn("_stamp", f.coalesce(f.unix_millis(columns.timestamp), f.lit(-1)))
        .groupBy(
            *others,
            f.col(columns.batch).cast("bigint").alias("batch"),
            f.col(columns.topic).alias("topic"),
            f.col(columns.partition).alias("partition"),
            f.when(stamp >= 0, stamp - f.pmod(stamp, width)).otherwise(-1).alias("bucket"),
        )
        .agg(
            f.count("*").alias("rows"),
            f.min(stamp).alias("oldest"),
            f.max(stamp).alias("newest"),
            f.coalesce(f.min(offset.cast("bigint")), f.lit(NO_OFFSET)).alias("first"),
            f.sum(content.cast("decimal(20,0)")).cast("decimal(38,0)").alias("content"),
        )
    )


def count_batch(
    frame: DataFrame,
    batch: int,
    settings: AuditSettings,
    tier: str,
    stream: str,
    columns: Columns | None = None,
) -> int:
    """Count the rows of one batch, for `foreachBatch`. Returns their number. A batch that runs again, with
    its number, counts once: `stream` must name the query or the checkpoint, the same after a restart."""
    from pyspark.sql import functions as f

    names = columns or Columns()
    return count_batches(frame.withColumn(names.batch, f.lit(batch)), settings, tier, stream, names)


def count_batches(
    frame: DataFrame, settings: AuditSettings, tier: str, stream: str, columns: Columns | None = None
) -> int:
    """Count the rows of all batches that the audit topic does not have yet. Returns their number."""
    from pyspark.sql import functions as f

    names = columns or Columns()
    last = in_thread(last_batch(settings, tier, stream))
    rows = grouped(frame.where(f.col(names.batch) > last), settings.width_ms, names).collect()
    groups = [Group(**row.asDict()) for row in rows]
    messages = messages_of(groups, settings, tier, stream, int(time.time() * 1000))
    in_thread(send(settings, messages))
    return sum(group.rows for group in groups)


def messages_of(
    groups: Iterable[Group], settings: AuditSettings, tier: str, stream: str, now_ms: int
) -> list[CountMessage]:
    """A message for each batch and topic; of many entries, several with streams of their own."""
    found: dict[tuple[int, str], list[Entry]] = {}
    for group in sorted(groups, key=lambda group: group.place):
        if not is_counted(group.topic, settings.topic):
            continue
        delays = Delays()
        if group.bucket >= 0 and group.rows:
            delays.add(now_ms - group.oldest)  # the two ends of the group: more is not known here
            delays.add(now_ms - group.newest, group.rows - 1)
        tally = Tally(group.rows, group.dropped)
        if group.content is not None:
            tally = tally._replace(summed=group.rows, content=int(group.content) & MODULUS_MASK)
        entry = Entry(group.bucket, tally, group.partition, delays, group.first)
        found.setdefault((group.batch, group.topic), []).append(entry)
    return [
        CountMessage(
            tier,
            topic,
            settings.host,
            f"{stream}/{topic}#{start // ENTRIES_MAX}",
            StreamKind.BATCHES,
            batch,
            batch + 1,
            now_ms,
            tuple(entries[start : start + ENTRIES_MAX]),
            settings.width_ms,
            settings.application,
        )
        for (batch, topic), entries in found.items()
        for start in range(0, len(entries), ENTRIES_MAX)
    ]


def cluster_of(settings: AuditSettings) -> Cluster:
    addresses = parse_bootstrap(settings.bootstrap)
    if settings.security is None:
        return Cluster(addresses, client_id="barnabas-audit")
    return Cluster(addresses, client_id="barnabas-audit", security=settings.security)


async def last_batch(settings: AuditSettings, tier: str, stream: str) -> int:
    """The number of the last batch that was counted; -1 if none was."""
    last = -1

    def note(message: CountMessage, arrived_ms: int) -> None:
        nonlocal last
        if message.tier == tier and message.stream.rpartition("/")[0] == stream:
            last = max(last, message.end - 1)

    async with cluster_of(settings) as cluster:
        await ensure_topic(cluster, settings.topic)
        reader = AuditTopicReader(cluster, settings.topic)
        try:
            await reader.catch_up(note)
        finally:
            await reader.close()
    return last


async def send(settings: AuditSettings, messages: Sequence[CountMessage]) -> None:
    """Batches in their order: what is stored of them is always the beginning."""
    async with cluster_of(settings) as cluster:
        publisher = Publisher(cluster, settings.topic)
        try:
            for batch in sorted({message.start for message in messages}):
                await publisher.send([each for each in messages if each.start == batch])
        finally:
            await publisher.close()


def in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine on a loop of its own: notebooks have one that runs already."""
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(asyncio.run(coroutine))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="barnabas-audit")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]
