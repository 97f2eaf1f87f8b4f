"""Keys and headers of records, in files beside those of the values, and back.

In: records. Out: columns that a format writes, and keys and headers of such columns. A key or a list of
headers is wrapped into a struct where the format needs one. Does not know: names of files.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from barnabas.connect.connectors.stores.json_values import text_of
from barnabas.connect.data import (
    OPTIONAL_STRING,
    STRING,
    Column,
    DataError,
    Header,
    Headers,
    Records,
    Schema,
    Type,
    array,
    struct,
)

NEED_STRUCTS = ("parquet", "avro", "csv")
KEY, HEADERS = "key", "headers"
LIST = array(struct(key=STRING, value=OPTIONAL_STRING))


def key_column(records: Records, form: str) -> Column:
    keys = records.keys
    if keys.schema is not None:
        if form in NEED_STRUCTS and (keys.schema.type is not Type.STRUCT or keys.data.null_count):
            return wrapped(keys, KEY)
        return keys
    if form not in NEED_STRUCTS:
        return keys
    if not all(each is None or isinstance(each, str | bytes) for each in keys.data):
        raise DataError(
            f"keys have no schema, and {form} needs one: use StringConverter, or keys.format.class JSON"
        )
    return wrapped(
        Column.of([None if each is None else text_of(each) for each in keys.data], OPTIONAL_STRING), KEY
    )


def header_column(records: Records, form: str) -> Column:
    rows = records.headers if records.headers is not None else [()] * len(records)
    lists = [
        [{"key": one.name, "value": None if one.value is None else text_of(one.value)} for one in each]
        for each in rows
    ]
    column = Column.of(lists, LIST)
    return wrapped(column, HEADERS) if form in NEED_STRUCTS else column


def wrapped(column: Column, name: str) -> Column:
    assert column.schema is not None
    schema = struct({name: column.schema.as_optional()})
    return Column(schema, pa.StructArray.from_arrays([column.data], fields=list(schema.arrow)))


def keys_in(column: Column) -> Column:
    """Keys as they were before they were wrapped."""
    schema = column.schema
    if schema is None or schema.type is not Type.STRUCT or schema.field_names != (KEY,):
        return column
    inner: Schema | None = schema.field(KEY)
    assert inner is not None
    return Column(inner, column.data.flatten()[0])


def headers_in(column: Column) -> list[Headers]:
    found: list[Headers] = []
    for each in column.pylist():
        rows: Any = each.get(HEADERS) if isinstance(each, dict) else each
        found.append(tuple(Header(one["key"], one["value"], OPTIONAL_STRING) for one in rows or ()))
    return found
