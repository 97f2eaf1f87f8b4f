"""Records that a person mended in a quarantine and released: raw still has them as they came.

In: a source, the part of raw that a command rewrites. Out: coordinates of such records. A replay leaves
their rows in all zones as they are: raw would bring back the broken record.
Does not know: how rows are rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING

from barnabas.pipeline.ingest import quarantine, raw_zone
from barnabas.pipeline.ingest.rewriting.finishing import fixed_copy
from barnabas.pipeline.ingest.write_mode import ReplayRange
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.spec.model import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RELEASED = f"NOT ({quarantine.WAITING})"


def mended(spark: SparkSession, pipeline: Pipeline, source: str, replayed: ReplayRange) -> DataFrame | None:
    """The coordinates of mended records in the range; None if there are none."""
    released = list(released_rows(spark, pipeline, source))
    if not released:
        return None
    wanted = reduce(lambda mine, other: mine.unionByName(other), released)
    raw = pipeline.lake_location.read(spark, TableName(Zone.RAW, source)).where(replayed.raw)
    raw = raw.select(*raw_zone.COORDINATES, "key", "value")
    both = raw.join(wanted, list(raw_zone.COORDINATES))
    found = both.where("NOT (value <=> as_value AND key <=> as_key)").select(*raw_zone.COORDINATES)
    found = fixed_copy(spark, found.distinct())
    return None if found.isEmpty() else found


def released_rows(spark: SparkSession, pipeline: Pipeline, source: str) -> Iterator[DataFrame]:
    """Released rows of the source in each quarantine that has some, with the bytes that they have there."""
    lake = pipeline.lake_location
    stagings = pipeline.staging_of(source)
    trusteds = [trusted for staging in stagings for trusted in pipeline.trusted_of(staging.name)]
    for name in dict.fromkeys(each.name for each in (*stagings, *trusteds)):
        table = quarantine.table_of(name)
        if lake.exists(spark, table):
            rows = lake.read(spark, table).where(f"{RELEASED} AND source = '{source}'")
            if not rows.isEmpty():
                yield rows.selectExpr(*raw_zone.COORDINATES, "key AS as_key", "value AS as_value")


def brought_back(rows: DataFrame, without: DataFrame | None) -> DataFrame:
    """Rows of raw that a replay writes again."""
    if without is None:
        return rows
    return rows.join(without, list(raw_zone.COORDINATES), "left_anti").select(*rows.columns)
