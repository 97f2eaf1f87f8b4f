"""The quarantine: rows that could not be parsed or that break rules, with rule and reason.

In: rows with their bytes, what was wrong. Out: a table for each staging or trusted table. It keeps the bytes,
so that a release can parse them again. Does not know: rules, releases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from barnabas.pipeline.ingest.parsing import raw
from barnabas.pipeline.lake.tables import TableName, Zone

if TYPE_CHECKING:
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
VALUE_CHARS_MAX = 60


def table_of(name: str) -> TableName:
    return TableName(Zone.QUARANTINE, name)


def refused(rows: DataFrame, table: TableName, rules: Column, reasons: Column) -> DataFrame:
    """Rows of the quarantine, from rows with prefixed raw columns. `rules` and `reasons` are arrays."""
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


def malformed(rows: DataFrame, table: TableName, schema: StructType, form: str) -> DataFrame:
    """Rows of the quarantine for rows that could not be parsed."""
    why = reason_of(schema) if form == "json" else F.lit(f"these bytes are no {form} of this schema")
    why = F.when(raw("value").isNull(), F.lit("there is no value")).otherwise(why)
    return refused(rows, table, F.array(F.lit(MALFORMED)), F.array(F.substring(why, 1, REASON_CHARS_MAX)))


def reason_of(schema: StructType) -> Column:
    """Why a value is no JSON of this schema, in one sentence."""
    text = raw("value").cast("string")
    found = F.when(F.trim(text) == "", F.lit("the value is empty"))
    found = found.when(F.ltrim(text).startswith("["), F.lit("no JSON object but a list"))
    found = found.when(
        F.try_parse_json(text).isNull(), F.concat(F.lit("no JSON: "), F.substring(text, 1, VALUE_CHARS_MAX))
    )
    for each in schema.fields:
        # A field in the text without a value in its column does not fit the type.
        written = F.get_json_object(text, f"$['{each.name}']")
        kind = each.dataType.simpleString()
        shown = F.concat(
            F.lit(f'{each.name} is "'),
            F.substring(written, 1, VALUE_CHARS_MAX),
            F.lit(f'", which is no {kind}'),
        )
        found = found.when(written.isNotNull() & F.col(f"`{each.name}`").isNull(), shown)
    return found.otherwise(F.lit("does not fit the schema"))
