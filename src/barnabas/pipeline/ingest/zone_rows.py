"""The staging zone: parsed, typed, deduplicated by key.

In: a parsed batch, which rows were judged to go in. Out: a commit; hashes of keys for judging, and the index
of the keys that are there. Does not know: rules, quarantine.
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
    """Out of a frame with prefixed raw columns."""
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
    """`rows` are a parsed frame without those that do not go in."""
    names = [*columns, *SYSTEM_COLUMNS]
    plain = [f"`{name}`" for name in names]
    if merging is Merging.FIRST or (merging is Merging.LAST and not keys):
        appender.append(rows.select(*plain), path, txn, widens=widens, properties=properties)
    elif keys:
        commits.merge(rows.select(*plain, OP), path, keys, names, txn, mirrors=merging is Merging.MIRROR)
    else:
        commits.overwrite(rows.select(*plain), path, txn)
