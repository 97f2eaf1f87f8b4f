"""The JSON format over columns.

A document is parsed once; its fields go into columns by the shape of the document, so names in another case
are looked for once a shape. A row with a value that needs ksqlDB's coercions, or that cannot be read, is read
by the codec of the format, alone. Does not know: topics.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from barnabas.sql.columns.json_texts import objects, texts_of
from barnabas.sql.columns.values import ARROW, PYTHON, array_of, masked, strangers
from barnabas.sql.formats.json_rows import NeedsExact, dumped, reader_of, writer_of
from barnabas.sql.metastore.schemas import Column as SqlColumn
from barnabas.sql.types.sql_types import BIGINT, INT_MAX, INT_MIN, INTEGER, LONG_MAX, LONG_MIN
from barnabas.streams.columns.column import Column, Fields
from barnabas.streams.columns.formats import Bad

Row = tuple[Any, ...]
SHAPES_MAX = 1_000
CHUNK = 512  # documents at a time: the collector of garbage looks at all that there are
BOUNDS = {INTEGER: (INT_MIN, INT_MAX), BIGINT: (LONG_MIN, LONG_MAX)}
FAILURES = (ValueError, ArithmeticError, TypeError, RecursionError, NeedsExact)


class Shapes(dict[Row, Callable[[dict[str, Any]], Row]]):
    """How the columns are taken out of a document with these fields."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, shape: Row) -> Callable[[dict[str, Any]], Row]:
        upper: dict[str, str] = {}
        for given in shape:
            upper.setdefault(given.upper(), given)
        fields = [name if name in shape else upper.get(name.upper()) for name in self._names]
        found = taker(fields)
        if len(self) < SHAPES_MAX:
            self[shape] = found
        return found


def taker(fields: Sequence[str | None]) -> Callable[[dict[str, Any]], Row]:
    known = [each for each in fields if each is not None]
    if len(known) > 1 and len(known) == len(fields):
        return operator.itemgetter(*known)
    return lambda row: tuple([None if each is None else row[each] for each in fields])


class JsonForm:
    """`read_row` and `write_row` are those of the codec; `is_bare`: the one column stands alone."""

    python = None

    def __init__(
        self,
        columns: Sequence[SqlColumn],
        read_row: Callable[[bytes], Any],
        write_row: Callable[[Any], bytes | None],
        *,
        is_bare: bool,
        is_key: bool,
    ) -> None:
        self._columns, self._names = columns, tuple(each.name for each in columns)
        self._read_row, self._write_row = read_row, write_row
        self._is_bare, self._is_key = is_bare, is_key
        self._shapes = Shapes(self._names)

    # -- reading -------------------------------------------------------------------------------------

    def read(self, data: pa.Array) -> tuple[Column, Bad]:
        raws = data.to_pylist()
        slow: set[int] = set()
        values: list[list[Any]] = [[] for _ in self._names]
        is_null: list[bool] = []
        for first in range(0, len(raws), CHUNK):
            documents = parsed(raws[first : first + CHUNK], first, slow)
            is_null += [each is None for each in documents]
            for column_values, more in zip(values, self._taken(documents, first, slow), strict=True):
                column_values += more
        nulls = np.array(is_null, np.bool_)
        arrays = [
            self._checked(some, column, slow) for some, column in zip(values, self._columns, strict=True)
        ]
        bad: Bad = {}
        for place in sorted(slow):
            try:
                row = self._read_row(raws[place])
            except Exception as error:
                bad[place], row = error, None
            nulls[place] = row is None
            for name, index in zip(self._names, range(len(values)), strict=True):
                values[index][place] = None if row is None else row[index] if self._is_key else row[name]
        if slow:
            arrays = [None] * len(values)
        made = [
            Column(array) if array is not None else made_of(some, column)
            for some, array, column in zip(values, arrays, self._columns, strict=True)
        ]
        return Fields(self._names, made, len(raws), nulls, is_tuple=self._is_key), bad

    def _taken(self, documents: list[Any], first: int, slow: set[int]) -> Sequence[Sequence[Any]]:
        """The values of each column as they stand in the documents."""
        if self._is_bare:
            return [documents]
        nothing = (None,) * len(self._names)
        shapes = self._shapes
        if set(map(type, documents)) <= {dict}:
            rows = [shapes[tuple(each)](each) for each in documents]
        else:  # nulls, and values that are no objects
            rows = []
            for place, each in enumerate(documents):
                if type(each) is dict:
                    rows.append(shapes[tuple(each)](each))
                    continue
                rows.append(nothing)
                if each is not None:
                    slow.add(first + place)
        return list(zip(*rows, strict=True)) if rows else [()] * len(self._names)

    def _checked(self, values: list[Any], column: SqlColumn, slow: set[int]) -> pa.Array | None:
        """Note the rows whose value is not plainly of the column's type; convert the others in place."""
        kind = column.kind
        others = strangers(values, kind)
        if others is None:
            convert = reader_of(kind)
            for place, value in enumerate(values):
                if value is not None:
                    try:
                        values[place] = convert(value)
                    except FAILURES:
                        slow.add(place)
            return None
        array = None if others else array_of(values, kind)
        if array is None:
            slow.update(others)
            bounds = BOUNDS.get(kind)
            if bounds is not None:
                slow.update(beyond(values, *bounds))
        return array

    # -- writing -------------------------------------------------------------------------------------

    def write(self, column: Column) -> pa.Array:
        if not isinstance(column, Fields) or len(column.columns) != len(self._columns):
            return pa.array(
                [None if each is None else self._write_row(each) for each in column.items], pa.binary()
            )
        texts = []
        for place, each in enumerate(self._columns):
            found = column.columns[place] if column.is_tuple else column.field(each.name)
            texts.append(self._texts(Column(pa.nulls(len(column))) if found is None else found, each))
        if self._is_bare:
            [given] = column.columns
            return masked(texts[0].cast(pa.binary()), column.is_null | given.is_null)
        return masked(objects(self._names, texts, len(column)), column.is_null)

    def _texts(self, values: Column, column: SqlColumn) -> pa.Array:
        write = writer_of(column.kind)
        dump = dumped if write is None else lambda value: dumped(write(value))
        wanted = ARROW.get(column.kind) if PYTHON.get(column.kind) is not bytes else None
        return texts_of(values, pa.null() if wanted is None else wanted, dump)


def beyond(values: Sequence[Any], low: int, high: int) -> list[int]:
    """The places of whole numbers that a type does not hold."""
    return [place for place, each in enumerate(values) if type(each) is int and not low <= each <= high]


def made_of(items: list[Any], column: SqlColumn) -> Column:
    array = array_of(items, column.kind) if strangers(items, column.kind) == [] else None
    return Column(items=items) if array is None else Column(array)


def parsed(raws: Sequence[bytes | None], first: int, slow: set[int]) -> list[Any]:
    """The documents; None stands for null. The places of those that cannot be parsed are noted."""
    try:
        return list(map(orjson.loads, raws))  # type: ignore[arg-type]
    except ValueError:
        pass
    documents: list[Any] = []
    for place, raw in enumerate(raws):
        try:
            documents.append(None if raw is None else orjson.loads(raw))
        except ValueError:
            documents.append(None)
            slow.add(first + place)
    return documents
