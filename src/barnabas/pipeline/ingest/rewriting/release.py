"""Release: quarantined rows that pass the rules now are written to their table, once.

In: a session, a pipeline, the name of a table. Out: what changed, and which views depend on it. Rows are
released chunk by chunk. Those that the table has are not written again: a repeated release goes on where an
interrupted one was. Rows are marked as released at the end.
Does not know: views, the command line.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from barnabas.engine.errors import NeedsDecision
from barnabas.engine.session import apart
from barnabas.pipeline.ingest import quarantine, raw_zone
from barnabas.pipeline.ingest.batch_parser import BatchParser, in_reading_order
from barnabas.pipeline.ingest.results import RewriteResult
from barnabas.pipeline.ingest.rewriting.chunks import chunks, rows_per_chunk
from barnabas.pipeline.ingest.rewriting.finishing import (
    epoch_of,
    finish,
    fixed_copy,
    result_of,
    retrying,
    rewritten,
    together,
    with_late,
)
from barnabas.pipeline.ingest.write_mode import RELEASE
from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.columns import COORDINATES
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.spec.model import Merging, Pipeline, by_name
from barnabas.pipeline.spec.source_locks import source_lock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MALFORMED_RELEASE = "release-malformed"


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
        waiting = waiting_rows(spark, pipeline, name, judge, wanted)
        for chunk in chunks(waiting, rows_per_chunk(spark)):
            rows = waiting.where(f"batch >= {chunk.first} AND batch < {chunk.end}")
            results.append(release_of(spark, pipeline, name, judge, rows))
            results = [together(RELEASE, results)]
    return together(RELEASE, results)


def waiting_rows(
    spark: SparkSession, pipeline: Pipeline, name: str, judge: Zone, wanted: set[str] | None
) -> DataFrame:
    """Rows of the quarantine that wait, and that their table lacks."""
    lake = pipeline.lake_location
    waiting = lake.read(spark, quarantine.table_of(name)).where(f"{quarantine.WAITING} AND zone = '{judge}'")
    if wanted is not None:
        waiting = waiting.where(F.arrays_overlap("rules", F.array(*[F.lit(each) for each in sorted(wanted)])))
    target = TableName(judge, name)
    if not lake.exists(spark, target):
        return waiting
    there = lake.read(spark, target).select(*COORDINATES).toDF(*raw_zone.COORDINATES)
    return waiting.join(there, list(raw_zone.COORDINATES), "left_anti").select(*waiting.columns)


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
    # Each row once, also where an older version of this program had quarantined it twice.
    kept = kept.dropDuplicates([*raw_zone.COORDINATES])
    # A fixed copy: our own commits change the tables that the rows are computed from.
    kept = fixed_copy(spark, kept)
    count = kept.count()
    if not count:
        return RewriteResult(what=RELEASE)
    parsed = parser.parse(with_late(in_reading_order(kept, count)), count)
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
