"""Backfill, replay and release: rows that were read before go through the zones again.

In: a session, a pipeline; times, batches or names of tables. Out: what changed, and which views depend on it.
Only the covered rows are rewritten, then the refined tables that depend on them. Each command can be repeated
after a crash. A running pipeline goes on; batches of the same source wait for the source's lock. A commit
conflict is retried. Does not know: views, the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from pyspark.sql import functions as F

from barnabas.engine.errors import CommitConflict, NeedsDecision, classified
from barnabas.engine.lease_status import check_lease
from barnabas.engine.session import apart, is_remote
from barnabas.pipeline.ingest import quarantine, raw_zone, refined_zone, schemas
from barnabas.pipeline.ingest.batch_parser import BatchParser
from barnabas.pipeline.ingest.fenced_tables import fence_tables
from barnabas.pipeline.ingest.parsed_batch import OUTSIDE, ParsedBatch, hashes_of
from barnabas.pipeline.ingest.replay_preview import (
    Confirm,
    clamped,
    preview,
    range_of_batches,
    range_of_times,
    refuse_removals,
)
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
from barnabas.pipeline.spec.state_folder import state_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ATTEMPTS_MAX = 3
REPLAY = "replay"
MALFORMED_RELEASE = "release-malformed"
T = TypeVar("T")


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
    with source_lock(pipeline, source):
        finish(spark, pipeline, source)
        if not confirm(preview(spark, pipeline, source, range_of_times(start, end))):
            return RewriteResult(what=f"backfill of {source}")
        return backfill_rows(spark, pipeline, found, start, end)


def backfill_rows(
    spark: SparkSession, pipeline: Pipeline, found: Source, start: datetime, end: datetime
) -> RewriteResult:
    source, missing = found.name, 0
    if isinstance(found, TopicSource):
        missing = retrying(lambda: read_missing(spark, pipeline, found, start, end), f"backfill of {source}")
    result = replay_rows(spark, pipeline, found, range_of_times(start, end))
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
    confirm: Confirm = refuse_removals,
) -> RewriteResult:
    """Write batches of raw again, with the current schema and rules; all batches unless numbers are given.

    Rows that raw has forgotten stay as they are. `rebuild` empties the tables first, which a column of
    another type needs: then `confirm` is asked about the rows that raw cannot bring back."""
    found = pipeline.source(source)
    with source_lock(pipeline, source):
        fence_tables(spark, pipeline)
        if not rebuild:
            finish(spark, pipeline, source)
        foreseen = preview(spark, pipeline, source, range_of_batches(from_batch, to_batch), rebuild=rebuild)
        if not confirm(foreseen):
            return RewriteResult(what=REPLAY)
        if rebuild:
            drop_tables(spark, pipeline, found)
            finish(spark, pipeline, source)
        result = replay_rows(spark, pipeline, found, range_of_batches(from_batch, to_batch))
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
        what = f"release of {name}"
        result = retrying(lambda: release_rows(apart(spark), pipeline, name, wanted), what)
        # The rows are marked last: a release that was interrupted earlier is repeated whole.
        tables = [table for _, table in released_to(spark, pipeline, name)]
        done = rewritten(spark, pipeline, what, result, result.changed, depended_on(pipeline, tables))
        if tables:
            retrying(lambda: mark_released(apart(spark), pipeline, name), what)
        return done


def sources_of(pipeline: Pipeline, name: str) -> list[str]:
    """Sources of the staging and the trusted table of this name, in order."""
    staging = {name, *(each.staging for each in pipeline.trusted if each.name == name)}
    return sorted({each.source for each in pipeline.staging if each.name in staging})


def depended_on(pipeline: Pipeline, tables: Iterable[TableName]) -> list[TableName]:
    """The tables, and the trusted tables of those in staging."""
    found = list(tables)
    for each in tables:
        if each.zone is Zone.STAGING:
            found += [TableName(Zone.TRUSTED, trusted.name) for trusted in pipeline.trusted_of(each.name)]
    return found


def epoch_of(pipeline: Pipeline) -> int:
    """The epoch of the lease that this run holds. NotOurLease if another host may have it."""
    return check_lease(state_folder(pipeline)).epoch


def finish(spark: SparkSession, pipeline: Pipeline, source: str) -> None:
    """Finish an interrupted batch first: finished later, it would write again what was rewritten
    meanwhile."""
    if pipeline.lake_location.exists(spark, TableName(Zone.RAW, source)):
        SourceRunner(spark, pipeline, source).recover()


def rewritten(
    spark: SparkSession,
    pipeline: Pipeline,
    what: str,
    result: RewriteResult,
    changed: Iterable[TableChange],
    before: Iterable[TableName] = (),
) -> RewriteResult:
    """Compute the refined tables that depend on the changes; add them and the names of dependent views.

    `before`: tables that an interrupted command has changed."""
    changed = list(changed)
    touched = {each.table for each in changed if each.table.zone in (Zone.STAGING, Zone.TRUSTED)}
    touched.update(before)
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
            app, epoch = f"{pipeline.name}/{source.name}/raw", epoch_of(pipeline)
            txn = commits.rewriting(spark, pipeline.lake_location, zone.table, app, epoch)
            commits.append(missing, zone.path, txn)
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
    columns = {TableName(Zone.STAGING, each.name): with_system(schema.fields) for each in parser.staging}
    for _, trusted in parser.trusted:
        columns[TableName(Zone.TRUSTED, trusted.name)] = parser.trusted_schema(trusted, schema)
    for table, found in columns.items():
        app = f"{pipeline.name}/{source.name}/{table.zone}/{table.name}"
        txn = commits.rewriting(spark, lake, table, app, epoch_of(pipeline))
        commits.overwrite(spark.createDataFrame([], found), lake.path(table), txn)


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
        replay_range = clamped(spark, pipeline, source, replay_range)
    else:
        replay_range = replace(replay_range, held=rows.select(*raw_zone.COORDINATES))
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
        is_staged = judge is Zone.TRUSTED
        done = parser.write(
            parsed, number, merging, writer=RELEASE if is_staged else MALFORMED_RELEASE,
            is_staged=is_staged, only=name if is_staged else "",
        )  # fmt: skip
        return result_of(RELEASE, parsed, done)
    finally:
        parsed.release()


def mark_released(spark: SparkSession, pipeline: Pipeline, name: str) -> None:
    """Mark the quarantined rows that the table has now, also those of an interrupted release."""
    lake, table = pipeline.lake_location, quarantine.table_of(name)
    app = f"{pipeline.name}/{sources_of(pipeline, name)[0]}/{table.zone}/{name}"
    same = " AND ".join(
        f"q.{mine} <=> t.{theirs}" for mine, theirs in zip(raw_zone.COORDINATES, COORDINATES, strict=True)
    )
    for judge, target in released_to(spark, pipeline, name):
        txn = commits.rewriting(spark, lake, table, app, epoch_of(pipeline))
        with commits.as_transaction(spark, txn):
            places = f"SELECT DISTINCT {', '.join(COORDINATES)} FROM {lake.identifier(target)}"
            spark.sql(
                f"MERGE INTO {lake.identifier(table)} q USING ({places}) t ON {same}"
                f" AND q.zone = '{judge}' AND q.released_at IS NULL"
                " WHEN MATCHED THEN UPDATE SET released_at = current_timestamp()"
            )


def released_to(spark: SparkSession, pipeline: Pipeline, name: str) -> list[tuple[Zone, TableName]]:
    """Tables with rows that still wait in the quarantine: a release has written them, but not marked them."""
    lake = pipeline.lake_location
    if not lake.exists(spark, quarantine.table_of(name)):
        return []
    waiting = lake.read(spark, quarantine.table_of(name)).where(quarantine.WAITING)
    found = []
    for judge in (Zone.STAGING, Zone.TRUSTED):
        target = TableName(judge, name)
        places = waiting.where(f"zone = '{judge}'").select(*raw_zone.COORDINATES).toDF(*COORDINATES)
        if lake.exists(spark, target):
            there = lake.read(spark, target).select(*COORDINATES)
            if not places.join(there, list(COORDINATES), "left_semi").isEmpty():
                found.append((judge, target))
    return found
