"""The quarantine: rows that could not be parsed or that break rules, with rule and reason, until released.

In: rows with their bytes, what was wrong. Out: a table for each staging or trusted table. The bytes are kept,
so that a release takes the same way as a batch. Does not know: rules, who releases.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from barnabas.pipeline.lake import Table, Zone
from barnabas.pipeline.parsing import raw

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

DDL = (
    "zone string, table string, rule string, rules array<string>, reason string,"
    " key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp,"
    " metadata string, source string, batch bigint, ingested_at timestamp,"
    " quarantined_at timestamp, released_at timestamp"
)
RAW_PART = (
    "key", "value", "topic", "partition", "offset", "timestamp", "metadata", "source", "batch", "ingested_at",
)  # fmt: skip
MALFORMED = "malformed"
WAITING = "released_at IS NULL"
REASON_CHARS_MAX = 200


def table_of(name: str) -> Table:
    return Table(Zone.QUARANTINE, name)


def refused(rows: DataFrame, table: Table, rules: Column, reasons: Column) -> DataFrame:
    """Rows with prefixed raw columns, as the quarantine keeps them. `rules` and `reasons` are arrays."""
    return rows.select(
        F.lit(str(table.zone)).alias("zone"),
        F.lit(table.name).alias("table"),
        F.element_at(rules, 1).alias("rule"),
        rules.alias("rules"),
        F.array_join(reasons, "; ").alias("reason"),
        *[raw(name).alias(name) for name in RAW_PART],
        F.current_timestamp().alias("quarantined_at"),
        F.lit(None).cast("timestamp").alias("released_at"),
    )


def malformed(rows: DataFrame, table: Table, schema: StructType, form: str) -> DataFrame:
    """Rows that could not be parsed; the reason is found by looking at each again."""
    explained = rows.mapInArrow(
        explaining([(each.name, each.dataType.simpleString()) for each in schema.fields], form),
        with_reason(rows),
    )
    return refused(
        explained,
        table,
        F.array(F.lit(MALFORMED)),
        F.array(F.coalesce(F.col("_why"), F.lit("cannot be parsed"))),
    )


def with_reason(rows: DataFrame) -> StructType:
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([*rows.schema.fields, StructField("_why", StringType())])


def explaining(fields: list[tuple[str, str]], form: str) -> Any:
    def explain(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            values = batch.column(batch.schema.get_field_index("__value")).to_pylist()
            why = pa.array(
                [reason_of(value, fields, form)[:REASON_CHARS_MAX] for value in values], pa.string()
            )
            yield pa.RecordBatch.from_arrays([*batch.columns, why], names=[*batch.schema.names, "_why"])

    return explain


def reason_of(value: bytes | None, fields: list[tuple[str, str]], form: str) -> str:
    """Why a value cannot be parsed: one sentence, with a name where there is one."""
    if value is None:
        return "there is no value"
    if form != "json":
        return f"these {len(value)} bytes are no {form} of this schema"
    try:
        text = value.decode()
    except UnicodeDecodeError as error:
        return f"no UTF-8: {error.reason} at byte {error.start}"
    if not text.strip():
        return "the value is empty"
    try:
        found = json.loads(text)
    except ValueError as error:
        return f"no JSON: {error}"
    if not isinstance(found, dict):
        return f"no JSON object but a {type(found).__name__}"
    for name, kind in fields:
        wrong = misfit(found.get(name), kind)
        if wrong:
            return f"{name} is {json.dumps(found[name])[:60]}, which is no {kind}"
    return "does not fit the schema"


def misfit(value: Any, kind: str) -> bool:
    """Whether a value of JSON cannot become a type of Spark, for the types that can tell."""
    if value is None or kind.startswith("string"):
        return False
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return not isinstance(value, int) or isinstance(value, bool)
    if kind in ("float", "double") or kind.startswith("decimal"):
        return not isinstance(value, int | float) or isinstance(value, bool)
    if kind == "boolean":
        return not isinstance(value, bool)
    if kind.startswith(("struct", "map")):
        return not isinstance(value, dict)
    if kind.startswith("array"):
        return not isinstance(value, list)
    if kind in ("timestamp", "timestamp_ntz", "date"):
        from datetime import datetime

        try:
            datetime.fromisoformat(value)
        except (ValueError, TypeError):
            return True
    return False
