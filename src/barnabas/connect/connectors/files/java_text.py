"""Texts of values as Java's `toString` gives them: what the file sink of Apache Kafka writes.

In: a column. Out: one text for each value. Columns of texts, whole numbers and structs of these are made as a
whole, others value by value. Does not know: files.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.data import Column, Schema, Type
from barnabas.settings.values import double_to_text

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


WHOLE = frozenset({Type.INT8, Type.INT16, Type.INT32, Type.INT64})


def lines_of(column: Column) -> memoryview:
    """The text of each value with a line end behind it, in UTF-8."""
    texts = texts_of(column)
    lines = pc.binary_join_element_wise(texts, pa.scalar("\n", texts.type), pa.scalar("", texts.type))
    offset_type = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, offset_type)[lines.offset : lines.offset + len(lines) + 1]
    return memoryview(data)[int(ends[0]) : int(ends[-1])] if len(lines) else memoryview(b"")


def texts_of(column: Column) -> pa.Array:
    """The text of each value; `null` for those that are missing."""
    schema = column.schema
    found = None if schema is None else simple_texts(column.data, schema)
    if found is None:
        found = pa.array([java_text(value, schema) for value in column.pylist()], pa.large_string())
    return pc.fill_null(found, "null")


def simple_texts(data: pa.Array, schema: Schema) -> pa.Array | None:
    """Texts of a whole column, null where there is no value; None for types that go value by value."""
    if schema.type is Type.STRING:
        return data.cast(pa.large_string())
    if schema.logical is not None:
        return None
    if schema.type is Type.BOOLEAN or schema.type in WHOLE:
        return data.cast(pa.large_string())
    if schema.type is not Type.STRUCT or not schema.fields:
        return None
    parts = []
    for index, each in enumerate(schema.fields):
        text = simple_texts(pc.struct_field(data, index), each.schema)
        if text is None:
            return None
        parts.append(pc.binary_join_element_wise(large(f"{each.name}="), text, large("")))
    inner = pc.binary_join_element_wise(*parts, large(","), null_handling="skip")
    found = pc.binary_join_element_wise(large("Struct{"), inner, large("}"), large(""))
    return found if not data.null_count else pc.if_else(data.is_valid(), found, pa.scalar(None, found.type))


def large(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def java_text(value: Any, schema: Schema | None = None) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return (
            double_to_text(value) if schema is None or schema.type is not Type.FLOAT32 else float_text(value)
        )
    if isinstance(value, bytes):
        return value.decode(errors="replace")  # Java prints an address, which helps nobody
    if isinstance(value, dict):
        return mapping_text(value, schema)
    if isinstance(value, list | tuple):
        inner = schema.value if schema is not None else None
        return f"[{', '.join(java_text(one, inner) for one in value)}]"
    return date_text(value)


def mapping_text(value: dict[Any, Any], schema: Schema | None) -> str:
    if schema is not None and schema.type is Type.STRUCT:
        given = [(each.name, value.get(each.name), each.schema) for each in schema.fields]
        return "Struct{" + ",".join(f"{n}={java_text(v, s)}" for n, v, s in given if v is not None) + "}"
    keys, values = (schema.key, schema.value) if schema is not None else (None, None)
    return "{" + ", ".join(f"{java_text(k, keys)}={java_text(v, values)}" for k, v in value.items()) + "}"


def float_text(value: float) -> str:
    """The shortest digits that mean the same float of 32 bits."""
    return double_to_text(float(str(np.float32(value))))


def date_text(value: Any) -> str:
    """`java.util.Date.toString` in UTC; decimals as they are."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, datetime):
        at = value.astimezone(UTC)
        return f"{DAYS[at.weekday()]} {MONTHS[at.month - 1]} {at:%d %H:%M:%S} UTC {at.year}"
    return str(value)
