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
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.audit.core.delays import Delays
from barnabas.audit.core.messages import ENTRIES_MAX, CountMessage, Entry, StreamKind, Tally
from barnabas.audit.counters.audit_counter import AuditSettings
from barnabas.audit.counters.audit_topic import ensure_topic, is_counted
from barnabas.audit.counters.audit_topic_reader import AuditTopicReader
from barnabas.audit.counters.publisher import Publisher
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of columns that say where a row comes from."""

    topic: str = "topic"
    partition: str = "partition"
    timestamp: str = "timestamp"
    batch: str = "batch"


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
    stamp = f.unix_millis(names.timestamp)
    width = f.lit(settings.width_ms)
    rows = (
        frame.where(f.col(names.batch) > last)
        .withColumn("_stamp", f.coalesce(stamp, f.lit(-1)))
        .groupBy(
            f.col(names.batch).cast("bigint").alias("batch"),
            f.col(names.topic).alias("topic"),
            f.col(names.partition).alias("partition"),
            f.when(f.col("_stamp") >= 0, f.col("_stamp") - f.pmod("_stamp", width))
            .otherwise(-1)
            .alias("bucket"),
        )
        .agg(f.count("*").alias("rows"), f.min("_stamp").alias("oldest"), f.max("_stamp").alias("newest"))
        .collect()
    )
    messages = messages_of(rows, settings, tier, stream, int(time.time() * 1000))
    in_thread(send(settings, messages))
    return sum(row["rows"] for row in rows)


def messages_of(
    rows: Sequence[Row], settings: AuditSettings, tier: str, stream: str, now_ms: int
) -> list[CountMessage]:
    """A message for each batch and topic; of many entries, several with streams of their own."""
    found: dict[tuple[int, str], list[Entry]] = {}
    for row in sorted(rows, key=lambda row: (row["batch"], row["topic"], row["partition"], row["bucket"])):
        if not is_counted(row["topic"], settings.topic):
            continue
        delays = Delays()
        if row["bucket"] >= 0:
            delays.add(now_ms - row["oldest"])  # the two ends of the group: more is not known here
            delays.add(now_ms - row["newest"], row["rows"] - 1)
        entry = Entry(row["bucket"], Tally(row["rows"]), row["partition"], delays)
        found.setdefault((row["batch"], row["topic"]), []).append(entry)
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
