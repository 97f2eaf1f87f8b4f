"""Records as Arrow columns with schemas, as frames of sinks have them.

In: Records. Out: keys and values as Arrow with their schemas, and tables with all columns of a frame. Values
without a schema get the one that Arrow finds in them. Pure.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas.connect.data import Column, Records, Schema
from barnabas.connect.data.arrow_shapes import fitted

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
STAMP = pa.timestamp("us", "UTC")

Side = tuple[Schema | None, pa.Array]


class ShapedRecords(NamedTuple):
    """Records of one topic, with their keys and values as Arrow."""

    records: Records
    keys: Side
    values: Side

    def framed(self, topic: str) -> pa.Table:
        """The columns as the sink's frame has them: in the types of Spark."""
        keys, values = (framed_side(each) for each in (self.keys, self.values))
        return columns_of(topic, self.records, keys, values)


class MixedTypes(Exception):
    """Values without a schema do not have one type."""


def shaped(column: Column) -> Side:
    """A column as Arrow with its schema; None for a column of nulls. Values without a schema get that which
    Arrow finds in them, or become JSON where they do not fit each other."""
    try:
        return of_one_type(column)
    except MixedTypes:
        texts = [None if each is None else json.dumps(each, default=str) for each in column.pylist()]
        found = pa.array(texts)
        return Schema.of_arrow(found.type).as_optional(), found


def of_one_type(column: Column) -> Side:
    """As `shaped`; MixedTypes where values do not fit each other."""
    if column.schema is not None:
        data = column.data
        return (None if data.null_count == len(data) and column.schema.optional else column.schema), data
    values = column.pylist()
    if all(each is None for each in values):
        return None, pa.nulls(len(values))
    try:
        found = pa.array(values)
        return Schema.of_arrow(found.type).as_optional(), found
    except Exception as error:
        raise MixedTypes(str(error)) from error


def columns_of(topic: str, part: Records, keys: pa.Array, values: pa.Array) -> pa.Table:
    return pa.table(
        {
            "topic": pa.array([topic] * len(part), pa.string()),
            "partition": part.partitions,
            "offset": part.offsets,
            "timestamp": part.timestamps.cast(pa.timestamp("ms", "UTC")).cast(STAMP),
            "key": keys,
            "value": values,
            "headers": pa.array(header_texts(part), HEADERS),
        }
    )


def framed_side(side: Side) -> pa.Array:
    """Keys or values in Arrow's type of the frame's column. pa.ArrowException or DataError: a value does not
    fit it."""
    schema, data = side
    if schema is None:
        return pa.nulls(len(data), pa.string())
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructField, StructType

    wanted: Any = to_arrow_schema(StructType([StructField("it", schema.spark)]), timezone="UTC")
    return fitted(data, wanted.field(0).type)


def header_texts(records: Records) -> list[list[dict[str, Any]] | None]:
    if records.headers is None:
        return [None] * len(records)
    return [
        [{"key": each.name, "value": text_of(each.value)} for each in headers] or None
        for headers in records.headers
    ]


def text_of(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return json.dumps(value, default=str)
