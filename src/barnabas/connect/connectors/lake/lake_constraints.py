"""CHECK constraints of a Delta table, and the records of a batch that break them.

A commit that breaks a constraint fails as a whole, and Delta names one row. In: the frame of the batch, the
constraints of the table. Out: the records that break one, by partition and offset, each with the reason: the
batch comes again, and they are refused before it is written. Does not know: commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.connect.config import Settings
from barnabas.connect.connectors.lake.lake_rows import columns_of
from barnabas.connect.connectors.lake.lake_types import fitted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

BROKEN_MAX = 10_000  # records that are found at once; the others are found when the batch comes again
VIOLATED = "DELTA_VIOLATE_CONSTRAINT"
PREFIX = "delta.constraints."
Broken = dict[tuple[int, int], str]  # the reason by partition and offset


def is_violation(error: BaseException) -> bool:
    return VIOLATED in str(error)


def constraints_of(spark: SparkSession, path: str) -> dict[str, str]:
    """The expressions of a table's constraints by name."""
    rows = spark.sql(f"SHOW TBLPROPERTIES delta.`{path}`").collect()
    return {row[0].removeprefix(PREFIX): row[1] for row in rows if row[0].startswith(PREFIX)}


def broken_by(frame: DataFrame, settings: Settings, path: str, there: StructType) -> Broken:
    """The records that break a constraint: its expression is false or null for them, as in Delta."""
    from pyspark.sql import functions as sql

    given = columns_of(frame, settings, has_values=True)
    kinds = dict(zip(given, frame.select(*given.values()).schema.fields, strict=True))
    by_name = {name.lower(): name for name in given}
    columns = []
    for each in there.fields:
        name = by_name.get(each.name.lower())
        column = (
            sql.lit(None).cast(each.dataType)
            if name is None
            else fitted(given[name], kinds[name].dataType, each.dataType, f"{path}: {each.name}")
        )
        columns.append(column.alias(each.name))
    reason = sql.lit(None).cast("string")
    for name, text in sorted(constraints_of(frame.sparkSession, path).items()):
        told = sql.lit(f"the table's constraint {name} ({text}) does not hold")
        reason = sql.coalesce(reason, sql.when(~sql.coalesce(sql.expr(text), sql.lit(False)), told))
    coordinates = [sql.col("`partition`").alias("_partition"), sql.col("`offset`").alias("_offset")]
    rows = frame.filter("value IS NOT NULL").select(*columns, *coordinates)
    found = rows.select("_partition", "_offset", reason.alias("_reason")).filter("_reason IS NOT NULL")
    return {(row[0], row[1]): row[2] for row in found.limit(BROKEN_MAX).collect()}
