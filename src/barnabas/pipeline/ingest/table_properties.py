"""Properties of tables: for which columns Delta keeps statistics. Existing tables get them at the next start.

In: a pipeline, a table, its columns. Out: properties. A query opens only files whose statistics fit, so the
columns that the platform asks for must be among them: batch, times, coordinates, keys. Trusted tables keep
statistics of their first columns too, for the queries of people. Does not know: rows, commits of batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.columns import (
    BATCH,
    INGESTED_AT,
    OFFSET,
    OP,
    PARTITION,
    ROW,
    SYSTEM_COLUMNS,
    TIMESTAMP,
    TOPIC,
)
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.spec.model import Pipeline, RuleKind, by_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

STATISTICS = "delta.dataSkippingStatsColumns"
PLATFORM = (BATCH, INGESTED_AT, TIMESTAMP, TOPIC, PARTITION, OFFSET)
RAW = ("batch", "ingested_at", "timestamp", "topic", "partition", "offset")
QUARANTINE = ("zone", "source", *RAW, "quarantined_at", "released_at")
SHOWN_MAX = 8  # first columns of a trusted table
# Types that Delta compares in statistics.
COMPARED = ("string", "bigint", "int", "smallint", "tinyint", "double", "float", "date", "timestamp")

_up_to_date: set[tuple[str, str]] = set()  # path and columns of tables that this process has looked at


def properties_of(pipeline: Pipeline, table: TableName, schema: StructType) -> dict[str, str]:
    """Properties of a table of the zones behind raw."""
    return {**commits.CHANGES, STATISTICS: ",".join(f"`{name}`" for name in wanted(pipeline, table, schema))}


def raw_statistics() -> str:
    return ",".join(f"`{name}`" for name in RAW)


def wanted(pipeline: Pipeline, table: TableName, schema: StructType) -> list[str]:
    """The columns of which statistics are kept."""
    if table.zone is Zone.RAW:
        return list(RAW)
    if table.zone is Zone.QUARANTINE:
        return list(QUARANTINE)
    kinds = {each.name: each.dataType.simpleString() for each in schema.fields if each.name not in (OP, ROW)}
    names = [*asked_for(pipeline, table)]
    if table.zone is Zone.TRUSTED:
        names += [name for name in kinds if name not in SYSTEM_COLUMNS][:SHOWN_MAX]
    compared = [name for name in names if kinds.get(name, "").partition("(")[0] in (*COMPARED, "decimal")]
    return list(dict.fromkeys((*PLATFORM, *compared)))


def asked_for(pipeline: Pipeline, table: TableName) -> list[str]:
    """Columns of keys, of rules `unique`, and of event times."""
    found: list[str] = []
    name = table.name
    if table.zone is Zone.TRUSTED:
        trusted = by_name(pipeline.trusted, name)
        name = trusted.staging
        for rule in trusted.rules:
            found += rule.columns if rule.kind is RuleKind.UNIQUE else ()
    staging = by_name(pipeline.staging, name)
    time = pipeline.source(staging.source).event_time
    return [*staging.key, *found, *([time] if time else [])]


def forget_what_was_seen() -> None:
    """Look at the properties of all tables again."""
    _up_to_date.clear()


def keep_statistics(spark: SparkSession, pipeline: Pipeline, table: TableName) -> bool:
    """Give an existing table its properties; whether it lacked them. Files that exist keep their statistics
    until they are compacted."""
    lake = pipeline.lake_location
    if not lake.exists(spark, table):
        return False
    schema = lake.read(spark, table).schema
    columns = ",".join(f"`{name}`" for name in wanted(pipeline, table, schema))
    if (lake.path(table), columns) in _up_to_date:
        return False
    name = lake.identifier(table)
    present = {str(row[0]): str(row[1]) for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}
    is_new = present.get(STATISTICS, "").replace("`", "") != columns.replace("`", "")
    if is_new:
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{STATISTICS}' = '{columns}')")
    _up_to_date.add((lake.path(table), columns))
    return is_new
