"""Arrow columns as JSON texts, column by column: no loop over records.

Every column becomes a column of texts; structs, lists and maps join the texts of their parts. Strings are
quoted as they are unless some need escapes. Bytes and decimals go value by value, because Arrow has no
base64.
"""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.convert.json_schemas import decimal_bytes, value_to_json
from barnabas.connect.data import DECIMAL_NAME, DataError, Schema, Type
from barnabas.connect.data.java_text import double_texts

NULL = pa.scalar("null", pa.string())
UNSAFE = r'["\\\x00-\x1f]'
INTEGERS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)
EMPTY = pa.scalar("", pa.string())


def texts(data: pa.Array, schema: Schema, *, numeric: bool, defaults: bool) -> pa.Array:
    """JSON of each value; a missing one is the text `null`, or the default of its schema."""
    missing = NULL
    if defaults and schema.default is not None:
        missing = pa.scalar(orjson.dumps(value_to_json(schema.default, schema)).decode())
    found = present_texts(data, schema, numeric=numeric, defaults=defaults)
    return pc.coalesce(found, missing) if data.null_count else found


def present_texts(data: pa.Array, schema: Schema, *, numeric: bool, defaults: bool) -> pa.Array:
    """JSON of each value that is not null."""
    logical = schema.logical
    if logical == DECIMAL_NAME:
        return decimal_texts(data, schema, numeric)
    if logical is not None:
        width = pa.int64() if schema.type is Type.INT64 else pa.int32()
        return pc.cast(pc.cast(data, width), pa.string())
    if schema.type in INTEGERS or schema.type is Type.BOOLEAN:
        return pc.cast(data, pa.string())
    if schema.type is Type.STRING:
        return quoted(data)
    if schema.type in (Type.FLOAT32, Type.FLOAT64):
        found = double_texts(data)
        finite = pc.coalesce(pc.is_finite(data), pa.scalar(True))
        if pc.all(finite).as_py() is False:
            found = pc.if_else(finite, found, pc.binary_join_element_wise('"', found, '"', ""))
        return found
    if schema.type is Type.BYTES:
        values = [None if one is None else f'"{base64.b64encode(one).decode()}"' for one in data.to_pylist()]
        return pa.array(values, pa.string())
    if schema.type is Type.STRUCT:
        return struct_texts(data, schema, numeric=numeric, defaults=defaults)
    return nested_texts(data, schema, numeric=numeric, defaults=defaults)


def quoted(data: pa.Array) -> pa.Array:
    """Strings in quotes. Only those with quotes, backslashes or control characters are escaped one by one."""
    unsafe = pc.match_substring_regex(data, UNSAFE)
    plain = pc.binary_join_element_wise('"', data, '"', "")
    if not pc.any(unsafe).as_py():
        return plain
    mask = pc.coalesce(unsafe, pa.scalar(False))
    escaped = [orjson.dumps(one).decode() for one in data.filter(mask).to_pylist()]
    return pc.replace_with_mask(plain, mask, pa.array(escaped, pa.string()))


def struct_texts(data: pa.Array, schema: Schema, *, numeric: bool, defaults: bool) -> pa.Array:
    if not schema.fields:
        return pc.if_else(data.is_valid(), pa.scalar("{}"), pa.scalar(None, pa.string()))
    pieces: list[Any] = []
    for number, (one, part) in enumerate(zip(schema.fields, data.flatten(), strict=True)):
        name = orjson.dumps(one.name).decode()
        pieces.append(pa.scalar(f"{'{' if number == 0 else ','}{name}:"))
        pieces.append(texts(part, one.schema, numeric=numeric, defaults=defaults))
    joined = pc.binary_join_element_wise(*pieces, "}", "")
    return pc.if_else(data.is_valid(), joined, pa.scalar(None, pa.string())) if data.null_count else joined


def nested_texts(data: pa.Array, schema: Schema, *, numeric: bool, defaults: bool) -> pa.Array:
    """Lists and maps: texts of the items, joined by the list that each belongs to."""
    assert schema.value is not None
    data = compact(data)
    begin, end = "[", "]"
    if schema.type is Type.ARRAY:
        items = texts(data.values, schema.value, numeric=numeric, defaults=defaults)
    else:
        assert schema.key is not None
        keys = texts(data.keys, schema.key, numeric=numeric, defaults=defaults)
        values = texts(data.items, schema.value, numeric=numeric, defaults=defaults)
        if schema.key.type is Type.STRING:
            begin, end = "{", "}"
            items = pc.binary_join_element_wise(keys, values, ":")
        else:
            items = pc.binary_join_element_wise("[", keys, ",", values, "]", "")
    lists = pa.ListArray.from_arrays(data.offsets, items)
    joined = pc.binary_join_element_wise(begin, pc.binary_join(lists, ","), end, "")
    return pc.if_else(data.is_valid(), joined, pa.scalar(None, pa.string())) if data.null_count else joined


def compact(data: pa.Array) -> pa.Array:
    """The same lists with offsets from zero on and no items of null lists."""
    return pa.concat_arrays([data.slice(0, 0), data]) if data.offset else data


def decimal_texts(data: pa.Array, schema: Schema, numeric: bool) -> pa.Array:
    scale = schema.scale
    if numeric:
        return pa.array([None if one is None else f"{one:f}" for one in data.to_pylist()], pa.string())
    values = [
        None if one is None else f'"{base64.b64encode(decimal_bytes(one, scale)).decode()}"'
        for one in data.to_pylist()
    ]
    return pa.array(values, pa.string())


def plain_json(value: Any) -> bytes:
    """JSON of a value without schema, as Java's converter writes it."""
    return orjson.dumps(value, default=odd_value, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)


def odd_value(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, tuple):
        return list(value)
    raise DataError(f"a value of type {type(value).__name__} cannot be written as JSON")
