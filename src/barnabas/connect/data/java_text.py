"""Values as Java prints them: Connect writes `toString` of values where it writes text.

In: an Arrow array with its schema, or one Python value. Out: texts. Numbers follow `Double.toString`
(`1.0E10`, `0.001`), structs `Struct{a=1,b=x}` without their null fields, maps `{a=1, b=2}`, lists `[1, 2]`.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.data.schema import DECIMAL_NAME, Schema, Type

PLAIN = (1e-3, 1e7)  # magnitudes that Java prints without an exponent
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def java_double(value: Any) -> str:
    """A double, or a float given as `numpy.float32`, as Java prints it: the shortest digits that mean it."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if str(value).startswith("-") else "0.0"
    if PLAIN[0] <= abs(value) < PLAIN[1]:
        text = np.format_float_positional(value, unique=True, trim="0")
        return str(text)
    mantissa, _, exponent = np.format_float_scientific(value, unique=True, trim="0").partition("e")
    return f"{mantissa}E{int(exponent)}"


def double_texts(data: pa.Array) -> pa.Array:
    """Floating point numbers as Java prints them; nulls stay null."""
    size = pc.abs(data)
    # `coalesce` turns the unknown answer for nulls into "plain": their text is null anyway.
    plain = pc.coalesce(pc.and_(pc.greater_equal(size, PLAIN[0]), pc.less(size, PLAIN[1])), pa.scalar(True))
    texts = pc.cast(data, pa.string())
    whole = pc.invert(pc.coalesce(pc.match_substring(texts, "."), pa.scalar(True)))
    texts = pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    if pc.all(plain).as_py() is not False:
        return texts
    rare = pc.indices_nonzero(pc.invert(plain))
    odd = data.take(rare).to_numpy(zero_copy_only=False)
    return pc.replace_with_mask(
        texts, pc.invert(plain), pa.array([java_double(one) for one in odd], pa.string())
    )


def java_texts(data: pa.Array, schema: Schema) -> pa.Array:
    """Each value as Java's `toString` gives it; nulls stay null."""
    if schema.logical is None:
        if schema.type is Type.STRING:
            return data
        if schema.type in (Type.FLOAT32, Type.FLOAT64):
            return double_texts(data)
        if schema.type is Type.BOOLEAN or schema.type in INTEGERS:
            return pc.cast(data, pa.string())
    values = data.to_pylist()
    return pa.array([None if one is None else java_text(one, schema) for one in values], pa.string())


INTEGERS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)


def java_text(value: Any, schema: Schema | None = None) -> str:
    """One Python value as Java's `toString` gives it."""
    if value is None:
        return "null"
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, float | np.floating):
        narrow = schema is not None and schema.type is Type.FLOAT32
        return java_double(np.float32(value) if narrow else value)
    if isinstance(value, Decimal):
        return java_decimal(value)
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return java_date(value)
    if schema is not None and schema.type is Type.STRUCT:
        parts = [
            f"{one.name}={java_text(value[one.name], one.schema)}"
            for one in schema.fields
            if value.get(one.name) is not None
        ]
        return f"Struct{{{','.join(parts)}}}"
    if isinstance(value, dict) or (schema is not None and schema.type is Type.MAP):
        pairs = value.items() if isinstance(value, dict) else value
        key, item = (schema.key, schema.value) if schema is not None else (None, None)
        return f"{{{', '.join(f'{java_text(k, key)}={java_text(v, item)}' for k, v in pairs)}}}"
    if isinstance(value, list | tuple):
        inner = schema.value if schema is not None else None
        return f"[{', '.join(java_text(one, inner) for one in value)}]"
    return str(value)


def java_decimal(value: Decimal) -> str:
    """`BigDecimal.toString`: like Python's, but an exponent has the sign that Java prints."""
    return str(value)


def java_date(value: dt.datetime | dt.date | dt.time) -> str:
    """`java.util.Date.toString` in UTC; a time of day is one of the first of January 1970."""
    if isinstance(value, dt.time):
        moment = dt.datetime.combine(dt.date(1970, 1, 1), value)
    elif isinstance(value, dt.datetime):
        moment = value
    else:
        moment = dt.datetime.combine(value, dt.time())
    day = f"{WEEKDAYS[moment.weekday()]} {MONTHS[moment.month - 1]} {moment.day:02}"
    return f"{day} {moment:%H:%M:%S} UTC {moment.year}"


def is_decimal(schema: Schema) -> bool:
    return schema.logical == DECIMAL_NAME
