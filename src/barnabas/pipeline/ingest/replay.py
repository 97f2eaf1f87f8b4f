"""What was read before is done again: backfill, replay, release. Only what they cover is rewritten.

In: a session, a pipeline, times, batches or names. Out: what changed, and which views depend on it. All of
them may be repeated after a crash: they find what is there. Refined tables that depend on it are computed
again. Does not know: views, who asked. A running pipeline goes on meanwhile, the source itself when its turn
comes; a commit that came first is met by a retry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from pyspark.sql import functions as F

from barnabas.pipeline.engine.errors import Interrupted, Stopped, explained
from barnabas.pipeline.engine.session import apart, is_remote
from barnabas.pipeline.ingest import quarantine, raw_zone, refined_zone, schemas
from barnabas.pipeline.ingest.batch_parser import Carrier
from barnabas.pipeline.ingest.results import Changed, Rewritten
from barnabas.pipeline.ingest.source_locks import turn
from barnabas.pipeline.ingest.source_runner import Feed
from barnabas.pipeline.ingest.zone_rows import with_system
from barnabas.pipeline.ingest.zone_writer import OUTSIDE, RELEASE, Carried, Cover, Prepared, hashes_of
from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.columns import COORDINATES
from barnabas.pipeline.lake.tables import Table, Zone
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
) -> Rewritten:
    """Records of [start, end) by their timestamps: what raw lacks is read from the topic, then all is
    replayed."""
    found = pipeline.source(source)
    with turn(pipeline, source):
        finish(spark, pipeline, source)
        return backfill_rows(spark, pipeline, found, start, end)


def backfill_rows(
    spark: SparkSession, pipeline: Pipeline, found: Source, start: datetime, end: datetime
) -> Rewritten:
    source, missing = found.name, 0
    if isinstance(found, TopicSource):
        missing = retrying(lambda: read_missing(spark, pipeline, found, start, end), f"backfill of {source}")
    condition = between("timestamp", start, end)
    result = replay_rows(
        spark, pipeline, found, Cover(condition, between("_timestamp", start, end), condition)
    )
    changed = result.changed
    if missing:
        table = Table(Zone.RAW, source)
        changed = (Changed(table, pipeline.the_lake.version(spark, table), missing), *changed)
    return rewritten(spark, pipeline, f"backfill of {source} from {start} to {end}", result, changed)


def replay(
    spark: SparkSession,
    pipeline: Pipeline,
    source: str,
    from_batch: int | None = None,
    to_batch: int | None = None,
    *,
    rebuild: bool = False,
) -> Rewritten:
    """Batches once more through the zones behind raw, with today's schema and rules. Without numbers: all of
    them. `rebuild` makes the tables anew, as a column of another type needs it."""
    found = pipeline.source(source)
    first, last = from_batch or 0, to_batch if to_batch is not None else 2**62
    condition = f"batch >= {first} AND batch <= {last}"
    cover = Cover(condition, f"_batch >= {first} AND _batch <= {last}", condition)
    with turn(pipeline, source):
        if rebuild:
            drop_tables(spark, pipeline, found)
        finish(spark, pipeline, source)
        result = replay_rows(spark, pipeline, found, cover)
        return rewritten(spark, pipeline, f"replay of {source}", result, result.changed)


def release(
    spark: SparkSession, pipeline: Pipeline, name: str, rules: Iterable[str] | None = None
) -> Rewritten:
    """Quarantined rows of a table that pass now go where they belong, once; the others stay. `rules` names
    which."""
    wanted = None if rules is None else set(rules)
    with ExitStack() as turns:
        for source in sources_of(pipeline, name):
            turns.enter_context(turn(pipeline, source))
            finish(spark, pipeline, source)
        result = retrying(lambda: release_rows(apart(spark), pipeline, name, wanted), f"release of {name}")
        return rewritten(spark, pipeline, f"release of {name}", result, result.changed)


def sources_of(pipeline: Pipeline, name: str) -> list[str]:
    """Of the staging and the trusted table of a name, in order."""
    staging = {name, *(each.staging for each in pipeline.trusted if each.name == name)}
    return sorted({each.source for each in pipeline.staging if each.name in staging})


def finish(spark: SparkSession, pipeline: Pipeline, source: str) -> None:
    """A batch that died between two zones is carried to its end first: who found half of it later would
    write again what was rewritten meanwhile."""
    if pipeline.the_lake.exists(spark, Table(Zone.RAW, source)):
        Feed(spark, pipeline, source).recover()


def rewritten(
    spark: SparkSession, pipeline: Pipeline, what: str, result: Rewritten, changed: Iterable[Changed]
) -> Rewritten:
    """With the refined tables that depend on it computed again, and the names of views."""
    changed = list(changed)
    touched = {each.table for each in changed if each.table.zone in (Zone.STAGING, Zone.TRUSTED)}
    tables, views = refined_sql.dependents(pipeline, touched)
    changed += refined_zone.refresh(spark, pipeline, [each.name for each in tables]) if tables else []
    return Rewritten(
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
            meaning = explained(error, doing)
            if not isinstance(meaning, Interrupted) or not left:
                raise meaning from error
    raise AssertionError


# -- backfill ---------------------------------------------------------------------------------------


def read_missing(
    spark: SparkSession, pipeline: Pipeline, source: TopicSource, start: datetime, end: datetime
) -> int:
    """Records of the topic that raw does not have are added to it; how many."""
    zone = raw_zone.RawZone(spark, pipeline.the_lake, pipeline.name, source.name)
    mark = zone.newest_mark()
    if mark is None:
        return 0  # the first batch reads all of it
    reader = TopicReader(spark, source, f"barnabas-{pipeline.name}-{source.name}-backfill")
    stamp = Stamp(source.name, mark.batch, datetime.now(UTC))
    rows = reader.between(int(start.timestamp() * 1000), int(end.timestamp() * 1000), stamp)
    if rows is None:
        return 0
    # What lies behind the position is read by the next batch, not here.
    position = mark.position or {}
    read = F.lit(False)
    for topic, partitions in position.items():
        for partition, offset in partitions.items():
            read = read | (
                (F.col("topic") == topic)
                & (F.col("partition") == int(partition))
                & (F.col("offset") < offset)
            )
    there = pipeline.the_lake.read(spark, zone.table).select(*raw_zone.COORDINATES)
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
    """Empty tables in today's columns, in one commit each: readers see the old rows or the new table."""
    schema = schemas.declared(source)
    if schema is None:
        raise Stopped(f"source {source.name}: tables can be rebuilt when the schema is declared")
    lake = pipeline.the_lake
    carrier = Carrier(spark, pipeline, source)
    for each in carrier.staging:
        path = lake.table_path(Zone.STAGING, each.name)
        commits.overwrite(spark.createDataFrame([], with_system(schema.fields)), path)
    for _, trusted in carrier.trusted:
        empty = spark.createDataFrame([], carrier.trusted_schema(trusted, schema))
        commits.overwrite(empty, lake.table_path(Zone.TRUSTED, trusted.name))


def replay_rows(spark: SparkSession, pipeline: Pipeline, source: Source, cover: Cover) -> Rewritten:
    return retrying(lambda: replay_once(apart(spark), pipeline, source, cover), f"replay of {source.name}")


def replay_once(spark: SparkSession, pipeline: Pipeline, source: Source, cover: Cover) -> Rewritten:
    lake = pipeline.the_lake
    zone = raw_zone.RawZone(spark, lake, pipeline.name, source.name)
    mark = zone.newest_mark()
    if mark is None or mark.batch == 0:
        return Rewritten(what=REPLAY)
    carrier = Carrier(spark, pipeline, source)
    carrier.open()
    rows = lake.read(spark, zone.table)
    number = lake.version(spark, zone.table)
    merging = mark.merging
    if merging is Merging.MIRROR:
        # The newest snapshot is all there is of the table; the ones before it were replaced.
        rows = rows.where(f"batch = {mark.batch} AND ({cover.raw})")
    elif merging is Merging.FIRST:
        rows = rows.where(cover.raw)
    rows = rows.orderBy("batch", *raw_zone.COORDINATES)
    prepared = carrier.prepare(with_late(rows))
    try:
        if not prepared.count:
            return Rewritten(what=REPLAY)
        if merging is Merging.LAST:
            narrow(carrier, prepared, rows.where(cover.raw))
        done = carrier.carry(prepared, number, merging, writer=f"{REPLAY}-{number}", cover=cover)
        return result_of(REPLAY, prepared, done)
    finally:
        prepared.release()


def narrow(carrier: Carrier, prepared: Prepared, covered: DataFrame) -> None:
    """Of changes, the keys that the cover touches are brought to their newest state; others are left
    alone."""
    part = carrier.prepare(with_late(covered.orderBy("batch", *raw_zone.COORDINATES)))
    try:
        touched = np.zeros(prepared.count, np.bool_)
        for index, each in enumerate(carrier.staging):
            if each.key:
                mine, theirs = hashes_of(prepared.numbers, f"k{index}"), hashes_of(part.numbers, f"k{index}")
                touched |= np.isin(mine.first, theirs.first)
        prepared.numbers[OUTSIDE] = ~touched
    finally:
        part.release()


def with_late(rows: DataFrame) -> DataFrame:
    return rows.select(*raw_zone.COLUMNS, F.lit(None).cast("timestamp").alias(LATE_BEFORE))


def result_of(what: str, prepared: Prepared, done: Carried) -> Rewritten:
    return Rewritten(
        what=what,
        rows_in=prepared.count,
        staged=done.staged,
        accepted=done.accepted,
        quarantined=done.quarantined,
        changed=tuple(done.changed),
    )


# -- release ----------------------------------------------------------------------------------------


def release_rows(spark: SparkSession, pipeline: Pipeline, name: str, wanted: set[str] | None) -> Rewritten:
    lake = pipeline.the_lake
    table = quarantine.table_of(name)
    known = sorted({each.name for each in (*pipeline.trusted, *pipeline.staging)})
    if name not in known:
        raise Stopped(f"there is no quarantine of {name!r}; there may be for {', '.join(known)}")
    if not lake.exists(spark, table):
        return Rewritten(what=RELEASE)
    results = []
    for judge in (Zone.STAGING, Zone.TRUSTED):
        waiting = lake.read(spark, table).where(f"{quarantine.WAITING} AND zone = '{judge}'")
        if wanted is not None:
            waiting = waiting.where(
                F.arrays_overlap("rules", F.array(*[F.lit(each) for each in sorted(wanted)]))
            )
        if not waiting.isEmpty():
            results.append(release_of(spark, pipeline, name, judge, waiting))
    return Rewritten(
        what=RELEASE,
        rows_in=sum(each.rows_in for each in results),
        staged=sum(each.staged for each in results),
        accepted=sum(each.accepted for each in results),
        quarantined=sum(each.quarantined for each in results),
        changed=tuple(change for each in results for change in each.changed),
    )


def taken_out(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """Spark Connect forgets checkpoints of sessions that were cloned: there the rows come and go."""
    return spark.createDataFrame(rows.toArrow(), rows.schema) if is_remote(spark) else rows.localCheckpoint()


def release_of(
    spark: SparkSession, pipeline: Pipeline, name: str, judge: Zone, waiting: DataFrame
) -> Rewritten:
    lake = pipeline.the_lake
    staging = name if judge is Zone.STAGING else by_name(pipeline.trusted, name).staging
    source = pipeline.source(by_name(pipeline.staging, staging).source)
    carrier = Carrier(spark, pipeline, source)
    carrier.open()
    path = lake.path(quarantine.table_of(name))
    target = lake.identifier(Table(judge, name))
    staged = lake.read(spark, Table(Zone.STAGING, staging)).select(*COORDINATES)
    at_same = [
        waiting[mine] == staged[theirs]
        for mine, theirs in zip(raw_zone.COORDINATES, COORDINATES, strict=True)
    ]
    # Rows of staging are judged by their newest version; what could not be parsed is not there yet.
    kept = waiting.join(staged, at_same, "left_anti" if judge is Zone.STAGING else "left_semi")
    # Taken out of the tables as they are now: what is computed from them would change with our own commits.
    kept = taken_out(spark, kept.orderBy("batch", *raw_zone.COORDINATES))
    prepared = carrier.prepare(with_late(kept))
    try:
        number = lake.version(spark, quarantine.table_of(name))
        merging = Merging.LAST if source.merging is Merging.MIRROR else source.merging
        writer = MALFORMED_RELEASE if judge is Zone.STAGING else RELEASE
        done = carrier.carry(prepared, number, merging, writer=writer, is_staged=judge is Zone.TRUSTED)
        result = result_of(RELEASE, prepared, done)
    finally:
        prepared.release()
    same = " AND ".join(
        f"q.{mine} <=> t.{theirs}" for mine, theirs in zip(raw_zone.COORDINATES, COORDINATES, strict=True)
    )
    # What is in the table now is released, also if somebody died before saying so.
    spark.sql(
        f"MERGE INTO delta.`{path}` q"
        f" USING (SELECT DISTINCT {', '.join(COORDINATES)} FROM {target}) t ON {same}"
        f" AND q.zone = '{judge}' AND q.released_at IS NULL"
        " WHEN MATCHED THEN UPDATE SET released_at = current_timestamp()"
    )
    return result
