"""Backfill, replay and release: rows that were read before go through the zones again.

In: a session, a pipeline; times, batches or names of tables. Out: what changed, and which views depend on it.
Only the covered rows are rewritten, then the refined tables that depend on them. Each command can be repeated
after a crash. A running pipeline goes on; batches of the same source wait for the source's lock. A commit
conflict is retried. Does not know: views, the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from pyspark.sql import functions as F

from barnabas.pipeline.engine.errors import CommitConflict, NeedsDecision, classified
from barnabas.pipeline.engine.session import apart, is_remote
from barnabas.pipeline.ingest import quarantine, raw_zone, refined_zone, schemas
from barnabas.pipeline.ingest.batch_parser import BatchParser
from barnabas.pipeline.ingest.parsed_batch import OUTSIDE, ParsedBatch, hashes_of
from barnabas.pipeline.ingest.results import RewriteResult, TableChange
from barnabas.pipeline.ingest.source_locks import source_lock
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.pipeline.ingest.write_mode import RELEASE, ReplayRange, WriteResult
from barnabas.pipeline.ingest.zone_rows import with_system
from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.columns import COORDINATES
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.sources.source_slice import LATE_BEFORE, Stamp
from barnabas.pipeline.sources.topic import TopicReader
from barnabas.pipeline.spec import refined_sql
from barnabas.pipeline.spec.model import Merging, Pipeline, Source, TopicSource, by_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ATTEMPTS_MAX = 3
REPLAY = "replay"
MALFORMED_RELEASE = "release-malformed"
T = TypeVar("T")
TIME = "%Y-%m-%d %H:%M:%S.%f"


def backfill(
    spark: SparkSession, pipeline: Pipeline, source: str, start: datetime, end: datetime
) -> RewriteResult:
    """Rewrite the records with timestamps in [start, end): read from the topic what raw lacks, then
    replay."""
    found = pipeline.source(source)
    with source_lock(pipeline, source):
        finish(spark, pipeline, source)
        return backfill_rows(spark, pipeline, found, start, end)


def backfill_rows(
    spark: SparkSession, pipeline: Pipeline, found: Source, start: datetime, end: datetime
) -> RewriteResult:
    source, missing = found.name, 0
    if isinstance(found, TopicSource):
        missing = retrying(lambda: read_missing(spark, pipeline, found, start, end), f"backfill of {source}")
    condition = between("timestamp", start, end)
    result = replay_rows(
        spark, pipeline, found, ReplayRange(condition, between("_timestamp", start, end), condition)
    )
    changed = result.changed
    if missing:
        table = TableName(Zone.RAW, source)
        changed = (TableChange(table, pipeline.lake_location.version(spark, table), missing), *changed)
    return rewritten(spark, pipeline, f"backfill of {source} from {start} to {end}", result, changed)


def replay(
    spark: SparkSession,
    pipeline: Pipeline,
    source: str,
    from_batch: int | None = None,
    to_batch: int | None = None,
    *,
    rebuild: bool = False,
) -> RewriteResult:
    """Write batches of raw again, with the current schema and rules; all batches unless numbers are given.

    `rebuild` empties the tables first, which a column of another type needs."""
    found = pipeline.source(source)
    first, last = from_batch or 0, to_batch if to_batch is not None else 2**62
    condition = f"batch >= {first} AND batch <= {last}"
    replay_range = ReplayRange(condition, f"_batch >= {first} AND _batch <= {last}", condition)
    with source_lock(pipeline, source):
        if rebuild:
            drop_tables(spark, pipeline, found)
        finish(spark, pipeline, source)
        result = replay_rows(spark, pipeline, found, replay_range)
        return rewritten(spark, pipeline, f"replay of {source}", result, result.changed)


def release(
    spark: SparkSession, pipeline: Pipeline, name: str, rules: Iterable[str] | None = None
) -> RewriteResult:
    """Write the quarantined rows of a table that pass its rules now, once; the others stay quarantined.

    `rules`: only rows that broke one of these."""
    wanted = None if rules is None else set(rules)
    with ExitStack() as turns:
        for source in sources_of(pipeline, name):
            turns.enter_context(source_lock(pipeline, source))
            finish(spark, pipeline, source)
        result = retrying(lambda: release_rows(apart(spark), pipeline, name, wanted), f"release of {name}")
        return rewritten(spark, pipeline, f"release of {name}", result, result.changed)


def sources_of(pipeline: Pipeline, name: str) -> list[str]:
    """Sources of the staging and the trusted table of this name, in order."""
    staging = {name, *(each.staging for each in pipeline.trusted if each.name == name)}
    return sorted({each.source for each in pipeline.staging if each.name in staging})


def finish(spark: SparkSession, pipeline: Pipeline, source: str) -> None:
    """Finish an interrupted batch first: finished later, it would write again what was rewritten
    meanwhile."""
    if pipeline.lake_location.exists(spark, TableName(Zone.RAW, source)):
        SourceRunner(spark, pipeline, source).recover()


def rewritten(
    spark: SparkSession, pipeline: Pipeline, what: str, result: RewriteResult, changed: Iterable[TableChange]
) -> RewriteResult:
    """Compute the refined tables that depend on the changes; add them and the names of dependent views."""
    changed = list(changed)
    touched = {each.table for each in changed if each.table.zone in (Zone.STAGING, Zone.TRUSTED)}
    tables, views = refined_sql.dependents(pipeline, touched)
    changed += refined_zone.refresh(spark, pipeline, [each.name for each in tables]) if tables else []
    return RewriteResult(
        what=what,
        rows_in=result.rows_in,
        staged=result.staged,
        accepted=result.accepted,
        quarantined=result.quarantined,
        changed=tuple(changed),
        refined=tuple(each.name for each in tables),
        views=tuple(views),
    )


def between(column: str, start: datetime, end: datetime) -> str:
    first, last = (each.astimezone(UTC).strftime(TIME) for each in (start, end))
    return f"{column} >= TIMESTAMP '{first}' AND {column} < TIMESTAMP '{last}'"


def retrying(attempt: Callable[[], T], doing: str) -> T:
    for left in reversed(range(ATTEMPTS_MAX)):
        try:
            return attempt()
        except Exception as error:
            meaning = classified(error, doing)
            if not isinstance(meaning, CommitConflict) or not left:
                raise meaning from error
    raise AssertionError


# -- backfill ---------------------------------------------------------------------------------------


def read_missing(
    spark: SparkSession, pipeline: Pipeline, source: TopicSource, start: datetime, end: datetime
) -> int:
    """Add the records of the topic that raw lacks; the number of records added."""
    zone = raw_zone.RawZone(spark, pipeline.lake_location, pipeline.name, source.name)
    checkpoint = zone.newest_checkpoint()
    if checkpoint is None:
        return 0  # the first batch will read them
    reader = TopicReader(spark, source, f"barnabas-{pipeline.name}-{source.name}-backfill")
    stamp = Stamp(source.name, checkpoint.batch, datetime.now(UTC))
    rows = reader.between(int(start.timestamp() * 1000), int(end.timestamp() * 1000), stamp)
    if rows is None:
        return 0
    # The next batch reads what lies behind the position.
    position = checkpoint.position or {}
    read = F.lit(False)
    for topic, partitions in position.items():
        for partition, offset in partitions.items():
            read = read | (
                (F.col("topic") == topic)
                & (F.col("partition") == int(partition))
                & (F.col("offset") < offset)
            )
    there = pipeline.lake_location.read(spark, zone.table).select(*raw_zone.COORDINATES)
    missing = (
        rows.where(read)
        .join(there, list(raw_zone.COORDINATES), "left_anti")
        .select(*raw_zone.COLUMNS)
        .persist()
    )
    try:
        count = missing.count()
        if count:
            commits.append(missing, zone.path, None)
        return count
    finally:
        missing.unpersist()


# -- replay -----------------------------------------------------------------------------------------


def drop_tables(spark: SparkSession, pipeline: Pipeline, source: Source) -> None:
    """Empty the tables and give them the current columns, in one commit each."""
    schema = schemas.declared(source)
    if schema is None:
        raise NeedsDecision(
            f"source {source.name}: only tables with a declared schema can be rebuilt: declare it"
        )
    lake = pipeline.lake_location
    parser = BatchParser(spark, pipeline, source)
    for each in parser.staging:
        path = lake.table_path(Zone.STAGING, each.name)
        commits.overwrite(spark.createDataFrame([], with_system(schema.fields)), path)
    for _, trusted in parser.trusted:
        empty = spark.createDataFrame([], parser.trusted_schema(trusted, schema))
        commits.overwrite(empty, lake.table_path(Zone.TRUSTED, trusted.name))


def replay_rows(
    spark: SparkSession, pipeline: Pipeline, source: Source, replay_range: ReplayRange
) -> RewriteResult:
    return retrying(
        lambda: replay_once(apart(spark), pipeline, source, replay_range), f"replay of {source.name}"
    )


def replay_once(
    spark: SparkSession, pipeline: Pipeline, source: Source, replay_range: ReplayRange
) -> RewriteResult:
    lake = pipeline.lake_location
    zone = raw_zone.RawZone(spark, lake, pipeline.name, source.name)
    checkpoint = zone.newest_checkpoint()
    if checkpoint is None or checkpoint.batch == 0:
        return RewriteResult(what=REPLAY)
    parser = BatchParser(spark, pipeline, source)
    parser.open()
    rows = lake.read(spark, zone.table)
    number = lake.version(spark, zone.table)
    merging = checkpoint.merging
    if merging is Merging.REPLACE_ALL:
        # The newest snapshot replaced all earlier ones.
        rows = rows.where(f"batch = {checkpoint.batch} AND ({replay_range.raw})")
    elif merging is Merging.INSERT_NEW:
        rows = rows.where(replay_range.raw)
    rows = rows.orderBy("batch", *raw_zone.COORDINATES)
    parsed = parser.parse(with_late(rows))
    try:
        if not parsed.count:
            return RewriteResult(what=REPLAY)
        if merging is Merging.UPSERT:
            narrow(parser, parsed, rows.where(replay_range.raw))
        done = parser.write(parsed, number, merging, writer=f"{REPLAY}-{number}", replay_range=replay_range)
        return result_of(REPLAY, parsed, done)
    finally:
        parsed.release()


def narrow(parser: BatchParser, parsed: ParsedBatch, covered: DataFrame) -> None:
    """Mark the rows of keys that have no change in the replayed range, so that they are not written."""
    covered_batch = parser.parse(with_late(covered.orderBy("batch", *raw_zone.COORDINATES)))
    try:
        touched = np.zeros(parsed.count, np.bool_)
        for index, each in enumerate(parser.staging):
            if each.key:
                mine, theirs = (
                    hashes_of(parsed.row_facts, f"k{index}"),
                    hashes_of(covered_batch.row_facts, f"k{index}"),
                )
                touched |= np.isin(mine.first, theirs.first)
        parsed.row_facts[OUTSIDE] = ~touched
    finally:
        covered_batch.release()


def with_late(rows: DataFrame) -> DataFrame:
    return rows.select(*raw_zone.COLUMNS, F.lit(None).cast("timestamp").alias(LATE_BEFORE))


def result_of(what: str, parsed: ParsedBatch, done: WriteResult) -> RewriteResult:
    return RewriteResult(
        what=what,
        rows_in=parsed.count,
        staged=done.staged,
        accepted=done.accepted,
        quarantined=done.quarantined,
        changed=tuple(done.changed),
    )


# -- release ----------------------------------------------------------------------------------------


def release_rows(
    spark: SparkSession, pipeline: Pipeline, name: str, wanted: set[str] | None
) -> RewriteResult:
    lake = pipeline.lake_location
    table = quarantine.table_of(name)
    known = sorted({each.name for each in (*pipeline.trusted, *pipeline.staging)})
    if name not in known:
        raise NeedsDecision(f"there is no quarantine of {name!r}; choose one of {', '.join(known)}")
    if not lake.exists(spark, table):
        return RewriteResult(what=RELEASE)
    results = []
    for judge in (Zone.STAGING, Zone.TRUSTED):
        waiting = lake.read(spark, table).where(f"{quarantine.WAITING} AND zone = '{judge}'")
        if wanted is not None:
            waiting = waiting.where(
                F.arrays_overlap("rules", F.array(*[F.lit(each) for each in sorted(wanted)]))
            )
        if not waiting.isEmpty():
            results.append(release_of(spark, pipeline, name, judge, waiting))
    return RewriteResult(
        what=RELEASE,
        rows_in=sum(each.rows_in for each in results),
        staged=sum(each.staged for each in results),
        accepted=sum(each.accepted for each in results),
        quarantined=sum(each.quarantined for each in results),
        changed=tuple(change for each in results for change in each.changed),
    )


def fixed_copy(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """The rows as they are now. Spark Connect loses checkpoints of cloned sessions, so there they are
    copied."""
    return spark.createDataFrame(rows.toArrow(), rows.schema) if is_remote(spark) else rows.localCheckpoint()


def release_of(
    spark: SparkSession, pipeline: Pipeline, name: str, judge: Zone, waiting: DataFrame
) -> RewriteResult:
    lake = pipeline.lake_location
    staging = name if judge is Zone.STAGING else by_name(pipeline.trusted, name).staging
    source = pipeline.source(by_name(pipeline.staging, staging).source)
    parser = BatchParser(spark, pipeline, source)
    parser.open()
    path = lake.path(quarantine.table_of(name))
    target = lake.identifier(TableName(judge, name))
    staged = lake.read(spark, TableName(Zone.STAGING, staging)).select(*COORDINATES)
    at_same = [
        waiting[mine] == staged[theirs]
        for mine, theirs in zip(raw_zone.COORDINATES, COORDINATES, strict=True)
    ]
    # A release to trusted takes rows that staging still has; one to staging takes rows that it lacks.
    kept = waiting.join(staged, at_same, "left_anti" if judge is Zone.STAGING else "left_semi")
    # A fixed copy: our own commits change the tables that the rows are computed from.
    kept = fixed_copy(spark, kept.orderBy("batch", *raw_zone.COORDINATES))
    parsed = parser.parse(with_late(kept))
    try:
        number = lake.version(spark, quarantine.table_of(name))
        merging = Merging.UPSERT if source.merging is Merging.REPLACE_ALL else source.merging
        writer = MALFORMED_RELEASE if judge is Zone.STAGING else RELEASE
        done = parser.write(parsed, number, merging, writer=writer, is_staged=judge is Zone.TRUSTED)
        result = result_of(RELEASE, parsed, done)
    finally:
        parsed.release()
    same = " AND ".join(
        f"q.{mine} <=> t.{theirs}" for mine, theirs in zip(raw_zone.COORDINATES, COORDINATES, strict=True)
    )
    # Rows that the target has are released, also those of an interrupted release.
    spark.sql(
        f"MERGE INTO delta.`{path}` q"
        f" USING (SELECT DISTINCT {', '.join(COORDINATES)} FROM {target}) t ON {same}"
        f" AND q.zone = '{judge}' AND q.released_at IS NULL"
        " WHEN MATCHED THEN UPDATE SET released_at = current_timestamp()"
    )
    return result
