"""Backfill: a range of time of a source is read again, and goes through the zones again.

In: a session, a pipeline, a source, two times. Out: what changed, and which views depend on it. Records
that raw lacks are read from the topic first, chunk by chunk; a repeated backfill leaves out what an
interrupted one has read. Then the range is replayed. Does not know: views, the command line.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from barnabas.pipeline.ingest import raw_zone
from barnabas.pipeline.ingest.results import RewriteResult, TableChange
from barnabas.pipeline.ingest.rewriting.chunks import rows_per_chunk
from barnabas.pipeline.ingest.rewriting.finishing import epoch_of, finish, retrying, rewritten
from barnabas.pipeline.ingest.rewriting.progress import Progress
from barnabas.pipeline.ingest.rewriting.replay import replay_rows, touched
from barnabas.pipeline.ingest.rewriting.replay_preview import (
    Confirm,
    preview,
    range_of_times,
    refuse_removals,
)
from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.sources.source_slice import Stamp
from barnabas.pipeline.sources.topic import TopicReader
from barnabas.pipeline.spec.model import Pipeline, TopicSource
from barnabas.pipeline.spec.source_locks import source_lock

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def backfill(
    spark: SparkSession,
    pipeline: Pipeline,
    source: str,
    start: datetime,
    end: datetime,
    *,
    confirm: Confirm = refuse_removals,
) -> RewriteResult:
    """Rewrite the records with timestamps in [start, end): read from the topic what raw lacks, then
    replay. Rows that neither raw nor the topic has stay as they are."""
    found = pipeline.source(source)
    whole = range_of_times(start, end)
    with source_lock(pipeline, source):
        progress = Progress(pipeline, found, f"backfill {whole.first} {whole.end}")
        finish(spark, pipeline, source)
        foreseen = preview(spark, pipeline, source, whole)
        what = f"backfill of {source}"
        if not confirm(replace(foreseen, resumes_at=progress.resumes_at)):
            return RewriteResult(what=what)
        missing = 0
        if isinstance(found, TopicSource):
            missing = read_missing(spark, pipeline, found, start, end, what)
        if missing:  # raw may hold now what it had forgotten
            foreseen = preview(spark, pipeline, source, whole)
        result = replay_rows(spark, pipeline, found, whole, foreseen, progress)
        changed = result.changed
        if missing:
            table = TableName(Zone.RAW, source)
            changed = (TableChange(table, pipeline.lake_location.version(spark, table), missing), *changed)
        what = f"{what} from {start} to {end}"
        done = rewritten(spark, pipeline, what, result, changed, touched(pipeline, source, progress))
        progress.finish()
        return done


def read_missing(
    spark: SparkSession, pipeline: Pipeline, source: TopicSource, start: datetime, end: datetime, what: str
) -> int:
    """Add the records of the topic that raw lacks; the number of records added."""
    zone = raw_zone.RawZone(spark, pipeline.lake_location, pipeline.name, source.name)
    checkpoint = zone.newest_checkpoint()
    if checkpoint is None:
        return 0  # the first batch will read them
    reader = TopicReader(spark, source, f"barnabas-{pipeline.name}-{source.name}-backfill")
    stamp = Stamp(source.name, checkpoint.batch, datetime.now(UTC))
    since, until = int(start.timestamp() * 1000), int(end.timestamp() * 1000)
    # Timestamps need not grow with offsets: a range of offsets may have records of other times.
    is_wanted = read_before(checkpoint) & F.expr(range_of_times(start, end).raw)
    total = 0
    for first, last, rows in reader.between(since, until, stamp, rows_per_chunk(spark)):
        near = F.col("offset").between(first, last)

        def attempt(rows: DataFrame = rows, near: Column = near) -> int:
            there = pipeline.lake_location.read(spark, zone.table).where(near).select(*raw_zone.COORDINATES)
            return added(spark, pipeline, zone, checkpoint, rows.where(is_wanted), there)

        total += retrying(attempt, what)
    return total


def read_before(checkpoint: raw_zone.RawCheckpoint) -> Column:
    """Records before the position. The next batch reads those behind it."""
    found = F.lit(False)
    for topic, partitions in (checkpoint.position or {}).items():
        for partition, offset in partitions.items():
            found = found | (
                (F.col("topic") == topic)
                & (F.col("partition") == int(partition))
                & (F.col("offset") < offset)
            )
    return found


def added(
    spark: SparkSession,
    pipeline: Pipeline,
    zone: raw_zone.RawZone,
    checkpoint: raw_zone.RawCheckpoint,
    rows: DataFrame,
    there: DataFrame,
) -> int:
    """Append the rows that are not there, in one commit."""
    missing = rows.join(there, list(raw_zone.COORDINATES), "left_anti").select(*raw_zone.COLUMNS).persist()
    try:
        count = missing.count()
        if count:
            app, epoch = f"{pipeline.name}/{checkpoint.source}/raw", epoch_of(pipeline)
            txn = commits.rewriting(spark, pipeline.lake_location, zone.table, app, epoch)
            commits.append(missing, zone.path, txn, metadata=checkpoint.text())
        return count
    finally:
        missing.unpersist()
