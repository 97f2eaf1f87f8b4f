"""Rows inside of a query (`ROW_BYTES`) over columns: topics between sub-topologies, and stores.

Does not know: the types of the columns; they are those of the values.
"""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa

from barnabas.sql.analysis.serdes import of_row_bytes, plain_value, to_row_bytes
from barnabas.sql.columns.json_texts import objects, texts_of
from barnabas.sql.columns.values import masked
from barnabas.streams.columns.column import Column, Fields
from barnabas.streams.columns.formats import Bad

CHUNK = 512  # rows at a time: the collector looks at all that there are


def dumped(value: Any) -> bytes:
    return orjson.dumps(plain_value(value))


class RowForm:
    python = None

    def read(self, data: pa.Array) -> tuple[Column, Bad]:
        raws = data.to_pylist()
        names: tuple[str, ...] | None = None
        values: list[list[Any]] = []
        for first in range(0, len(raws), CHUNK):
            rows: list[Any] = [
                None if each is None else of_row_bytes(each) for each in raws[first : first + CHUNK]
            ]
            shapes = set(map(tuple, rows)) if set(map(type, rows)) == {dict} else set()
            if names is None and len(shapes) == 1:
                [names] = shapes
                values = [[] for _ in names]
            if shapes != {names}:
                return Column(items=[None if each is None else of_row_bytes(each) for each in raws]), {}
            for some, more in zip(values, zip(*(each.values() for each in rows), strict=True), strict=False):
                some += more
        return Fields(names or (), [Column(items=some) for some in values], len(raws)), {}

    def write(self, column: Column) -> pa.Array:
        is_plain = isinstance(column, Fields) and not column.is_tuple
        if not is_plain or any(each.startswith("$") for each in column.names):  # type: ignore[attr-defined]
            return pa.array(
                [None if each is None else to_row_bytes(each) for each in column.items], pa.binary()
            )
        assert isinstance(column, Fields)
        texts = [texts_of(each, None, dumped) for each in column.columns]
        return masked(objects(column.names, texts, len(column)), column.is_null)
