"""Values of SQL as Arrow arrays: which types have one, and columns made of Python values.

BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING and BYTES are arrays; whole numbers have 64 bits. Values of other
types stay Python objects. Does not know: formats, expressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.sql.types.sql_types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INT_MAX,
    INT_MIN,
    INTEGER,
    STRING,
    SqlType,
)
from barnabas.streams.columns.column import Column, Constant, NotColumnar

ARROW: Mapping[SqlType, pa.DataType] = MappingProxyType(
    {
        BOOLEAN: pa.bool_(),
        INTEGER: pa.int64(),
        BIGINT: pa.int64(),
        DOUBLE: pa.float64(),
        STRING: pa.string(),
        BYTES: pa.binary(),
    }
)
PYTHON: Mapping[SqlType, type] = MappingProxyType(
    {BOOLEAN: bool, INTEGER: int, BIGINT: int, DOUBLE: float, STRING: str, BYTES: bytes}
)
NONE_TYPE = type(None)


def strangers(items: Sequence[Any], kind: SqlType) -> list[int] | None:
    """The places of values that are not of the type's class in Python; None where no class is enough."""
    wanted = PYTHON.get(kind)
    if wanted is None:
        return None
    if set(map(type, items)) <= {wanted, NONE_TYPE}:
        return []
    return [place for place, each in enumerate(items) if type(each) is not wanted and each is not None]


def array_of(items: Sequence[Any], kind: SqlType) -> pa.Array | None:
    """Values of the type's class as an array; None where a number is beyond the type."""
    try:
        found = pa.array(items, ARROW[kind])
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
        return None
    if kind == INTEGER and not fits_int(found):
        return None
    return found


def fits_int(array: pa.Array) -> bool:
    ends = pc.min_max(array)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return low is None or (low >= INT_MIN and high <= INT_MAX)


def column_of(items: list[Any], kind: SqlType) -> Column:
    """Values of a type as a column: an array where all are of its class."""
    if strangers(items, kind) == []:
        array = array_of(items, kind)
        if array is not None:
            return Column(array)
    return Column(items=items)


def operand_of(column: Column, kind: SqlType) -> Any:
    """The array of a column, or the scalar of a constant, if its values are plain ones of the type. Else
    None."""
    wanted = ARROW.get(kind)
    if wanted is None:
        return None
    try:
        found = column.operand
    except NotColumnar:
        return pa.scalar(None, wanted) if isinstance(column, Constant) and column.value is None else None
    if pa.types.is_null(found.type):
        return found.cast(wanted)
    return found if found.type == wanted else None


def full(operand: Any, count: int) -> pa.Array:
    """An operand with a value for each row."""
    if not isinstance(operand, pa.Scalar):
        return operand
    return pa.nulls(count, operand.type) if not operand.is_valid else pa.repeat(operand, count)


def masked(array: pa.Array, nulls: Any) -> pa.Array:
    """The array with null at these places."""
    if nulls is None or not nulls.any():
        return array
    return pc.if_else(pa.array(nulls), pa.scalar(None, array.type), array)


def has_special_bytes(texts: pa.Array) -> bool:
    """Whether a text has a quote, a backslash or a control character."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return False
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    some = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    return bool(((some < 0x20) | (some == 0x22) | (some == 0x5C)).any())
