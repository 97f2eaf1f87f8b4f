"""Payloads of one schema read by Arrow's JSON reader, all at once.

`read` returns None wherever the reader could see something else than the road record by record: then that
road decides. It is the same for nulls in required fields, because errors need an index.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from barnabas.connect.data import DECIMAL_NAME, Column, DataError, Schema, Type
from barnabas.connect.data.column import check_required

BEGIN, MIDDLE = b'{"schema":', b',"payload":'
BLOCK_MAX = 1 << 30


def envelope_prefix(data: pa.Array) -> bytes | None:
    """The text of the first record before its payload: `{"schema":…,"payload":`, or None."""
    if not len(data) or data.null_count == len(data):
        return None
    first = next(one.as_py() for one in data if one.is_valid)
    if not first.startswith(BEGIN):
        return None
    place = first.find(MIDDLE)
    while place >= 0:  # a text of the schema could hold the same bytes: the schema must be whole before it
        try:
            orjson.loads(first[len(BEGIN) : place])
            return bytes(first[: place + len(MIDDLE)])
        except orjson.JSONDecodeError:
            place = first.find(MIDDLE, place + 1)
    return None


def all_have(data: pa.Array, prefix: bytes) -> bool:
    """Whether all records begin like the first one and end with the envelope's brace."""
    begins = pc.equal(pc.binary_slice(data, 0, len(prefix)), prefix)
    ends = pc.equal(pc.binary_slice(data, -1), b"}")
    return pc.all(pc.and_(begins, ends)).as_py() is not False


def read(payloads: pa.Array, schema: Schema, *, defaults: bool) -> Column | None:
    """A column of payloads, tombstones included. None: go record by record."""
    wrapped = schema.type is not Type.STRUCT
    kind = read_type(schema)
    if kind is None or not len(payloads):
        return None
    valid = payloads.drop_null() if payloads.null_count else payloads
    if not len(valid):
        return None
    lines = pc.binary_join_element_wise(b'{"v":', valid, b"}\n", b"")
    text = joined(lines)
    if text.size > BLOCK_MAX or count_newlines(text) != len(valid):
        return None
    options = pj.ParseOptions(
        explicit_schema=pa.schema([pa.field("v", kind)]), unexpected_field_behavior="ignore"
    )
    try:
        table = pj.read_json(
            pa.BufferReader(text), pj.ReadOptions(use_threads=False, block_size=text.size + 1), options
        )
    except (pa.ArrowException, ValueError):
        return None
    if table.num_rows != len(valid):
        return None
    try:
        found = finished(table.column("v").combine_chunks(), schema, defaults)
        if found.null_count and not wrapped:
            return None  # a null payload is an error of its record, or a null with a schema
        check_required(found, schema)
    except (DataError, pa.ArrowException):
        return None
    if payloads.null_count:
        places = pc.cumulative_sum(payloads.is_valid().cast(pa.int64()))
        places = pc.if_else(payloads.is_valid(), pc.subtract(places, 1), pa.scalar(None, pa.int64()))
        found = found.take(places)
    return Column(schema, found)


def joined(lines: pa.Array) -> pa.Buffer:
    """The bytes of all lines: they lie one behind the other already."""
    _, offsets, text = lines.buffers()
    ends = np.frombuffer(offsets, np.int32)[lines.offset : lines.offset + len(lines) + 1]
    return text.slice(int(ends[0]), int(ends[-1] - ends[0]))


def count_newlines(text: pa.Buffer) -> int:
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == 10))


def read_type(schema: Schema) -> pa.DataType | None:
    """The schema to ask the reader for. None where its reading differs from ours: bytes and decimals."""
    if schema.type is Type.BYTES or schema.logical == DECIMAL_NAME:
        return None
    if schema.logical is not None:
        return pa.int64() if schema.type is Type.INT64 else pa.int32()
    if schema.type is Type.STRUCT:
        parts = [(one.name, read_type(one.schema)) for one in schema.fields]
        if not parts or any(kind is None for _, kind in parts):
            return None
        return pa.struct([pa.field(name, kind) for name, kind in parts])
    if schema.type is Type.ARRAY:
        assert schema.value is not None
        inner = read_type(schema.value)
        return None if inner is None else pa.list_(inner)
    if schema.type is Type.MAP:
        return None
    return schema.arrow


def finished(data: pa.Array, schema: Schema, defaults: bool) -> pa.Array:
    """The values that were read, with the types of the schema and with defaults in the place of nulls."""
    made: Any
    if schema.type is Type.STRUCT:
        parts = [
            finished(part, one.schema, defaults)
            for one, part in zip(
                schema.fields, data.flatten() if data.null_count else fields(data), strict=True
            )
        ]
        mask = data.is_null() if data.null_count else None
        kinds = list(schema.arrow)
        made = pa.StructArray.from_arrays(parts, fields=kinds, mask=mask)
    elif schema.type is Type.ARRAY:
        assert schema.value is not None
        if data.type == schema.arrow:
            made = data
        else:
            inner = finished(data.values, schema.value, defaults)
            mask = data.is_null() if data.null_count else None
            made = pa.ListArray.from_arrays(data.offsets, inner, type=schema.arrow, mask=mask)
    else:
        made = data.cast(schema.arrow)
    if defaults and schema.default is not None and made.null_count:
        made = pc.coalesce(made, pa.scalar(schema.default, schema.arrow))
    return made


def fields(data: pa.Array) -> list[pa.Array]:
    return [data.field(index) for index in range(data.type.num_fields)]
