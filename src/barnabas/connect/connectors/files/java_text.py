"""Texts of values as Java's `toString` gives them: what the file sink of Apache Kafka writes.

In: a column. Out: one text for each value. Does not know: files.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from barnabas.connect.data import Column, Schema, Type
from barnabas.settings.values import double_to_text

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def texts_of(column: Column) -> list[str]:
    """The text of each value; `null` for those that are missing."""
    schema = column.schema
    if schema is not None and schema.type is Type.STRING:
        return ["null" if value is None else value for value in column.data.to_pylist()]
    return [java_text(value, schema) for value in column.pylist()]


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
    import numpy as np

    return double_to_text(float(str(np.float32(value))))


def date_text(value: Any) -> str:
    """`java.util.Date.toString` in UTC; decimals as they are."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, datetime):
        at = value.astimezone(UTC)
        return f"{DAYS[at.weekday()]} {MONTHS[at.month - 1]} {at:%d %H:%M:%S} UTC {at.year}"
    return str(value)
