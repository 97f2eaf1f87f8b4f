"""Counts what zones hold of a source's batches: rows by topic, partition and bucket of their timestamps.

In: the tables of a source, a range of batches, duplicates. Out: groups of rows by tier. One job of Spark
reads a few columns of the files of these batches; executors count, the driver gets sums. Tables are read as
they are committed, so rows that a batch should have written and did not are missing in its counts. A row
that a table refused is dropped, not lost: it waits in a quarantine, or its key was there before.
Does not know: count messages, brokers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from barnabas.audit.core.tiers import zone_of_source
from barnabas.audit.lake.contents import contents_of
from barnabas.audit.lake.frames import Columns, Group, grouped
from barnabas.pipeline.ingest import quarantine
from barnabas.pipeline.ingest.audit_mark import Duplicates
from barnabas.pipeline.lake.columns import BATCH, OFFSET, PARTITION, TIMESTAMP, TOPIC
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.spec.model import Merging, Pipeline, Source, Staging, Trusted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

COUNTED = Columns(offset="offset", content="content")
OF_ZONES = Columns(TOPIC, PARTITION, TIMESTAMP, BATCH, OFFSET)
TABLE, REFUSED, STAMP = "table", "refused", "_stamp"

Groups = dict[str, list[Group]]  # by tier


def tier_of(pipeline: Pipeline, source: Source, table: TableName) -> str:
    """The tier of a table: raw has one for each source, other zones one for each table."""
    name = "" if table.zone is Zone.RAW else table.name
    return zone_of_source(pipeline.name, source.name, str(table.zone), name)


def counted_tables(pipeline: Pipeline, source: Source) -> tuple[list[Staging], list[tuple[Staging, Trusted]]]:
    """Tables behind raw that are counted: those that keep every row. Change events replace rows."""
    if source.merging is not Merging.INSERT_NEW:
        return [], []
    stagings = pipeline.staging_of(source.name)
    return stagings, [(each, trusted) for each in stagings for trusted in pipeline.trusted_of(each.name)]


def groups_of(
    spark: SparkSession,
    pipeline: Pipeline,
    source: Source,
    batches: tuple[int, int],
    duplicates: Iterable[Duplicates],
    width_ms: int,
) -> Groups:
    """The groups of each tier, of batches from the first to before the second."""
    frames = list(frames_of(spark, pipeline, source, batches))
    rows = reduce(lambda mine, other: mine.unionByName(other), frames)
    counts = grouped(rows, width_ms, COUNTED, TABLE, REFUSED).collect()
    found: dict[tuple[str, bool], list[Group]] = {}
    for row in counts:
        values = row.asDict()
        place = (values.pop(TABLE), values.pop(REFUSED))
        found.setdefault(place, []).append(Group(**values))
    repeated: dict[str, list[Group]] = {}
    for each in duplicates:
        if batches[0] <= each.batch < batches[1]:
            group = Group(each.batch, each.topic, each.partition, each.bucket, each.rows)
            repeated.setdefault(each.staging, []).append(group)

    raw = TableName(Zone.RAW, source.name)
    tiers: Groups = {tier_of(pipeline, source, raw): found.get((str(raw), False), [])}
    stagings, trusteds = counted_tables(pipeline, source)
    lost: dict[str, list[Group]] = {}
    for staging in stagings:
        table = TableName(Zone.STAGING, staging.name)
        lost[staging.name] = [*found.get((str(table), True), ()), *repeated.get(staging.name, ())]
        kept = found.get((str(table), False), [])
        tiers[tier_of(pipeline, source, table)] = together(kept, lost[staging.name])
    for staging, trusted in trusteds:
        table = TableName(Zone.TRUSTED, trusted.name)
        refused = [*lost[staging.name], *found.get((str(table), True), ())]
        tiers[tier_of(pipeline, source, table)] = together(found.get((str(table), False), []), refused)
    return tiers


def together(kept: Iterable[Group], dropped: Iterable[Group]) -> list[Group]:
    """One group for each place, with what is there and what was dropped."""
    found = {group.place: group for group in kept}
    for each in dropped:
        there = found.get(each.place) or replace(each, rows=0)
        found[each.place] = replace(there, dropped=there.dropped + each.rows)
    return list(found.values())


def frames_of(
    spark: SparkSession, pipeline: Pipeline, source: Source, batches: tuple[int, int]
) -> Iterator[DataFrame]:
    """Rows of each table: where they are, and whether that is a quarantine."""
    lake, (first, end) = pipeline.lake_location, batches
    raw = TableName(Zone.RAW, source.name)
    within = f"batch >= {first} AND batch < {end}"
    rows = lake.read(spark, raw).where(within)
    if pipeline.audit.has_sums:
        rows = with_contents(rows)
    yield narrow(rows, F.lit(str(raw)), COUNTED, is_refused=False)
    stagings, trusteds = counted_tables(pipeline, source)
    tables = [TableName(Zone.STAGING, each.name) for each in stagings]
    tables += [TableName(Zone.TRUSTED, each.name) for _, each in trusteds]
    for table in tables:
        if lake.exists(spark, table):
            rows = lake.read(spark, table).where(f"{BATCH} >= {first} AND {BATCH} < {end}")
            yield narrow(rows, F.lit(str(table)), OF_ZONES, is_refused=False)
    for table in dict.fromkeys(quarantine.table_of(each.name) for each in tables):
        if lake.exists(spark, table):
            # Released rows are in their table.
            mine = f"{within} AND source = '{source.name}' AND {quarantine.WAITING}"
            place = F.concat_ws(".", "zone", "table")
            yield narrow(lake.read(spark, table).where(mine), place, COUNTED, is_refused=True)


def with_contents(rows: DataFrame) -> DataFrame:
    """Rows of raw with the numbers of their contents, as the brokers have them."""
    coordinates = [COUNTED.topic, COUNTED.partition, COUNTED.timestamp, COUNTED.batch, COUNTED.offset]
    stamp = F.coalesce(F.unix_millis(COUNTED.timestamp), F.lit(-1))
    given = rows.select(*coordinates, "key", "value", stamp.alias(STAMP))
    kept = given.select(*coordinates).schema
    return given.mapInArrow(contents_of_rows, kept.add(COUNTED.content, "long"))


def contents_of_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        stamps = batch.column(STAMP).to_numpy(zero_copy_only=False)
        contents = contents_of((batch.column("key"), batch.column("value")), stamps)
        kept = batch.drop_columns(["key", "value", STAMP])
        yield kept.append_column(COUNTED.content, pa.array(contents.view(np.int64)))


def narrow(rows: DataFrame, table: Column, columns: Columns, *, is_refused: bool) -> DataFrame:
    return rows.select(
        table.alias(TABLE),
        F.lit(is_refused).alias(REFUSED),
        F.col(columns.batch).alias(COUNTED.batch),
        F.col(columns.topic).alias(COUNTED.topic),
        F.col(columns.partition).alias(COUNTED.partition),
        F.col(columns.timestamp).alias(COUNTED.timestamp),
        F.col(columns.offset).alias(COUNTED.offset),
        (F.col(columns.content) if columns.content in rows.columns else F.lit(None))
        .cast("bigint")
        .alias(COUNTED.content),
    )
