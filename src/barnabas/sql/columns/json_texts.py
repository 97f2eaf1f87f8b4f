"""JSON of columns: the text of each value, and of rows with fields, made by Arrow where the type is plain.

The texts are those of orjson, byte for byte. Other values are written one by one by a function of the caller.
Does not know: which format asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.sql.columns.values import has_special_bytes
from barnabas.streams.columns.column import Column, NotColumnar

Dump = Callable[[Any], bytes]
NULL = "null"


def texts_of(column: Column, wanted: pa.DataType | None, dump: Dump) -> pa.Array:
    """The JSON of each value; `null` for null. `wanted` is the type that needs no `dump`; None: any plain
    one."""
    try:
        array = column.array
    except NotColumnar:
        array = None
    if array is not None:
        if pa.types.is_null(array.type):
            return pa.array([NULL] * len(array), pa.string())
        if wanted is None or array.type == wanted:
            found = plain_texts(array)
            if found is not None:
                return found
    return pa.array([NULL if each is None else dump(each) for each in column.items], pa.string())


def plain_texts(array: pa.Array) -> pa.Array | None:
    kind = array.type
    if kind == pa.int64() or kind == pa.bool_():
        return array.cast(pa.string()).fill_null(NULL)
    if kind == pa.string():
        return quoted(array)
    if kind == pa.float64():
        return numbers(array)
    return None


def quoted(texts: pa.Array) -> pa.Array:
    if has_special_bytes(texts):
        return pa.array([orjson.dumps(each) for each in texts.to_pylist()], pa.string())
    return pc.binary_join_element_wise('"', texts, '"', "").fill_null(NULL)


def numbers(array: pa.Array) -> pa.Array | None:
    """JSON texts of numbers. None where a number is not finite: JSON has none of these."""
    if not len(array):
        return pa.array([], pa.string())
    plain = array.fill_null(0.0).to_numpy(zero_copy_only=False)
    if not np.isfinite(plain).all():
        return None
    found = orjson.dumps(np.ascontiguousarray(plain), option=orjson.OPT_SERIALIZE_NUMPY)
    texts = pa.array(found[1:-1].split(b","), pa.string())
    return pc.if_else(array.is_valid(), texts, NULL) if array.null_count else texts


def objects(names: Sequence[str], texts: Sequence[pa.Array], count: int) -> pa.Array:
    """The JSON of rows from that of their fields."""
    if not names:
        return pa.array([b"{}"] * count, pa.binary())
    parts: list[Any] = []
    for place, (name, each) in enumerate(zip(names, texts, strict=True)):
        parts += [("," if place else "{") + orjson.dumps(name).decode() + ":", each]
    return pc.binary_join_element_wise(*parts, "}", "").cast(pa.binary())
