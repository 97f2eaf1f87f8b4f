"""Maintenance of tables: compaction, vacuum, and retention.

In: a session, a pipeline. Out: what was done to which table. Compaction and vacuum change no rows and no
change feed; retention deletes rows. Does not know: schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from barnabas.engine.errors import CommitConflict, classified
from barnabas.engine.session import apart
from barnabas.pipeline.ingest import raw_zone
from barnabas.pipeline.ingest.write_mode import literal
from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.columns import INGESTED_AT
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.spec.source_locks import source_lock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The column by which rows of a zone get too old.
AGES = {
    Zone.RAW: "ingested_at",
    Zone.STAGING: INGESTED_AT,
    Zone.TRUSTED: INGESTED_AT,
    Zone.QUARANTINE: "quarantined_at",
}
FILES_TO_COMPACT_MIN = 2
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Maintained:
    """`before` and `after` count files of a compaction; `removed` counts rows of a retention."""

    table: TableName
    what: str
    before: int = 0
    after: int = 0
    removed: int = 0
    problem: str = ""


def tables_of(pipeline: Pipeline) -> Iterator[TableName]:
    yield from (TableName(Zone.RAW, each.name) for each in pipeline.sources)
    yield from (TableName(Zone.STAGING, each.name) for each in pipeline.staging)
    yield from (TableName(Zone.TRUSTED, each.name) for each in pipeline.trusted)
    yield from (TableName(Zone.REFINED, each.name) for each in pipeline.refined)
    names = dict.fromkeys(each.name for each in (*pipeline.staging, *pipeline.trusted))
    yield from (TableName(Zone.QUARANTINE, name) for name in names)


def maintain(
    spark: SparkSession,
    pipeline: Pipeline,
    *,
    compact: bool = True,
    vacuum: bool = True,
    retention: bool = True,
    now: datetime | None = None,
    progress: Progress | None = None,
) -> list[Maintained]:
    """Maintain all tables, one by one. A table with a commit conflict is left for the next time."""
    spark = apart(spark)
    lake = pipeline.lake_location
    tables = [table for table in tables_of(pipeline) if lake.exists(spark, table)]
    found: list[Maintained] = []
    for index, table in enumerate(tables):
        if progress is not None:
            progress(str(table), index, len(tables))
        try:
            if retention:
                with lock_of(pipeline, table):
                    found += forget(spark, pipeline, table, now or datetime.now(UTC))
            if compact:
                found += compacted(spark, pipeline, table)
            if vacuum:
                found.append(vacuumed(spark, pipeline, table))
        except Exception as error:
            meaning = classified(error, f"maintenance of {table}")
            if not isinstance(meaning, CommitConflict):
                raise meaning from error
            found.append(Maintained(table, "later", problem=str(meaning)))
    return found


def lock_of(pipeline: Pipeline, table: TableName) -> AbstractContextManager[object]:
    """The lock that keeps retention and commands that rewrite the same rows apart."""
    return source_lock(pipeline, table.name) if table.zone is Zone.RAW else nullcontext()


def compacted(
    spark: SparkSession, pipeline: Pipeline, table: TableName, *, at_once: int | None = None
) -> Iterator[Maintained]:
    """Compact files that are smaller than the half of a full one. `at_once`: how many are written at once.
    The session keeps these settings."""
    name = pipeline.lake_location.identifier(table)
    before = files_of(spark, name)
    if before < FILES_TO_COMPACT_MIN:
        return
    target = pipeline.maintenance.file_bytes_target
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(target))
    spark.conf.set("spark.databricks.delta.optimize.minFileSize", str(max(target // 2, 1)))
    if at_once is not None:
        spark.conf.set("spark.databricks.delta.optimize.maxThreads", str(at_once))
    with keeping_checkpoint(spark, pipeline, table):
        spark.sql(f"OPTIMIZE {name}")
    yield Maintained(table, "compact", before, files_of(spark, name))


def files_of(spark: SparkSession, name: str) -> int:
    row = spark.sql(f"DESCRIBE DETAIL {name}").select("numFiles").first()
    return int(row[0]) if row is not None else 0


def vacuumed(spark: SparkSession, pipeline: Pipeline, table: TableName) -> Maintained:
    hours = pipeline.maintenance.vacuum_s / 3600
    with keeping_checkpoint(spark, pipeline, table):
        spark.sql(f"VACUUM {pipeline.lake_location.identifier(table)} RETAIN {hours:.4f} HOURS")
    return Maintained(table, "vacuum")


def forget(spark: SparkSession, pipeline: Pipeline, table: TableName, now: datetime) -> Iterator[Maintained]:
    age_s = pipeline.retention_s.get(str(table.zone))
    column = AGES.get(table.zone)
    if age_s is None or column is None:
        return
    old = f"{column} < {literal(now - timedelta(seconds=age_s))}"
    lake = pipeline.lake_location
    if lake.read(spark, table).where(old).isEmpty():
        return
    name = lake.identifier(table)
    with keeping_checkpoint(spark, pipeline, table):
        if table.zone is Zone.RAW:
            # Only retention may delete from raw.
            spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.appendOnly' = 'false')")
        try:
            row = spark.sql(f"DELETE FROM {name} WHERE {old}").first()
        finally:
            if table.zone is Zone.RAW:
                spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    yield Maintained(table, "retention", removed=int(row[0]) if row is not None else 0)


class keeping_checkpoint:
    """Repeat the newest checkpoint in commits of maintenance on raw tables: Delta removes old log entries,
    and the position must not get lost."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, table: TableName) -> None:
        self._spark = spark
        self._checkpoint: str | None = None
        if table.zone is Zone.RAW:
            checkpoint = raw_zone.RawZone(
                spark, pipeline.lake_location, pipeline.name, table.name
            ).newest_checkpoint()
            self._checkpoint = checkpoint.text() if checkpoint is not None else None

    def __enter__(self) -> None:
        if self._checkpoint is not None:
            self._spark.conf.set(commits.METADATA_CONF, self._checkpoint)

    def __exit__(self, *problem: object) -> None:
        if self._checkpoint is not None:
            self._spark.conf.unset(commits.METADATA_CONF)
