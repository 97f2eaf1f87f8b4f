"""Rows of staging and trusted tables: the columns that the platform adds, and how rows are written.

In: a parsed batch without the rows that were refused. Out: a commit: appended, merged by key, or replacing
all rows. Does not know: rules, quarantine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.pipeline.ingest.parsing import raw
from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.columns import (
    BATCH,
    INGESTED_AT,
    LATE,
    OFFSET,
    OP,
    PARTITION,
    RESCUED,
    SYSTEM_COLUMNS,
    TIMESTAMP,
    TOPIC,
)
from barnabas.pipeline.spec.model import Merging

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SYSTEM_FIELDS = [
    StructField(TOPIC, StringType()),
    StructField(PARTITION, IntegerType()),
    StructField(OFFSET, LongType()),
    StructField(TIMESTAMP, TimestampType()),
    StructField(BATCH, LongType()),
    StructField(INGESTED_AT, TimestampType()),
    StructField(LATE, BooleanType()),
    StructField(RESCUED, StringType()),
]


def with_system(fields: Sequence[StructField]) -> StructType:
    return StructType([*fields, *SYSTEM_FIELDS])


def system_columns() -> list[Column]:
    """The platform's columns, from a frame with prefixed raw columns."""
    names = {TOPIC: "topic", PARTITION: "partition", OFFSET: "offset", TIMESTAMP: "timestamp", BATCH: "batch"}
    names[INGESTED_AT] = "ingested_at"
    return [
        *[raw(name).alias(column) for column, name in names.items()],
        F.col(LATE),
        F.col(RESCUED),
    ]


def write(
    rows: DataFrame,
    path: str,
    columns: Sequence[str],
    keys: Sequence[str],
    merging: Merging,
    txn: commits.Txn,
    appender: commits.Appender,
    *,
    widens: bool = False,
    properties: Mapping[str, str] | None = None,
) -> None:
    """Write the rows as `merging` says."""
    names = [*columns, *SYSTEM_COLUMNS]
    plain = [f"`{name}`" for name in names]
    if merging is Merging.INSERT_NEW or (merging is Merging.UPSERT and not keys):
        appender.append(rows.select(*plain), path, txn, widens=widens, properties=properties)
    elif keys:
        commits.merge(rows.select(*plain, OP), path, keys, names, txn, mirrors=merging is Merging.REPLACE_ALL)
    else:
        commits.overwrite(rows.select(*plain), path, txn)
