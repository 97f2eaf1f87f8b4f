"""KAFKA, DELIMITED and NONE over columns. Rows that are not plain are read and written by the codec, alone.

Does not know: topics.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.sql.columns.values import ARROW, column_of, masked
from barnabas.sql.formats.plain_rows import DELIMITERS
from barnabas.sql.metastore.schemas import Column as SqlColumn
from barnabas.sql.types.sql_types import BIGINT, BYTES, DOUBLE, INTEGER, STRING, SqlType
from barnabas.streams.columns.column import Column, Fields
from barnabas.streams.columns.formats import Bad, numbers_of

ReadRow = Callable[[bytes], Any]
WriteRow = Callable[[Any], bytes | None]
SHAPES: dict[SqlType, tuple[str, Any]] = {
    INTEGER: (">i4", np.int64),
    BIGINT: (">i8", np.int64),
    DOUBLE: (">f8", np.float64),
}
WHOLE_CELL = {INTEGER: "^-?[0-9]{1,9}$", BIGINT: "^-?[0-9]{1,18}$"}
REAL_CELL = r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$"


class CodecForm:
    """Any format, row by row."""

    def __init__(
        self, columns: Sequence[SqlColumn], read_row: ReadRow, write_row: WriteRow, *, is_key: bool, name: str
    ) -> None:
        self._columns, self._names = columns, tuple(each.name for each in columns)
        self._read_row, self._write_row, self._is_key = read_row, write_row, is_key
        self.python: str | None = f"{name} is read and written row by row"

    def read(self, data: pa.Array) -> tuple[Column, Bad]:
        return self._read_rows(data.to_pylist())

    def _read_rows(self, raws: Sequence[bytes | None]) -> tuple[Column, Bad]:
        read, bad = self._read_row, Bad()
        rows: list[Any] = []
        for place, raw in enumerate(raws):
            try:
                rows.append(None if raw is None else read(raw))
            except Exception as error:
                rows.append(None)
                bad[place] = error
        nulls = np.fromiter((each is None for each in rows), np.bool_, len(rows))
        made = []
        for index, column in enumerate(self._columns):
            at: Any = index if self._is_key else column.name
            made.append(column_of([None if row is None else row[at] for row in rows], column.kind))
        return Fields(self._names, made, len(rows), nulls, is_tuple=self._is_key), bad

    def write(self, column: Column) -> pa.Array:
        write = self._write_row
        return pa.array([None if each is None else write(each) for each in column.items], pa.binary())


class NoneForm(CodecForm):
    """The format of keys without columns: there is never one."""

    def __init__(self, read_row: ReadRow, write_row: WriteRow, *, is_key: bool) -> None:
        super().__init__((), read_row, write_row, is_key=is_key, name="NONE")
        self.python = None

    def read(self, data: pa.Array) -> tuple[Column, Bad]:
        return Fields((), (), len(data), np.ones(len(data), np.bool_), is_tuple=self._is_key), {}

    def write(self, column: Column) -> pa.Array:
        return pa.nulls(len(column), pa.binary())


class KafkaForm(CodecForm):
    """One column in the bytes of Kafka's own serializers."""

    def __init__(
        self, columns: Sequence[SqlColumn], read_row: ReadRow, write_row: WriteRow, *, is_key: bool
    ) -> None:
        super().__init__(columns, read_row, write_row, is_key=is_key, name="KAFKA")
        [self._column] = columns
        self.python = None

    def read(self, data: pa.Array) -> tuple[Column, Bad]:
        kind = self._column.kind
        if kind == BYTES:
            return self._row(data, data), {}
        if kind == STRING:
            try:
                return self._row(data.cast(pa.string()), data), {}
            except pa.ArrowInvalid:
                return super().read(data)
        form, found = SHAPES[kind]
        sizes = pc.binary_length(data).fill_null(np.dtype(form).itemsize)
        if not pc.all(pc.equal(sizes, np.dtype(form).itemsize), min_count=0).as_py():
            return super().read(data)
        if data.null_count == len(data):
            return self._row(pa.nulls(len(data), ARROW[kind]), data), {}
        return self._row(numbers_of(data, form, found), data), {}

    def _row(self, array: pa.Array, data: pa.Array) -> Fields:
        nulls = data.is_null().to_numpy(zero_copy_only=False) if data.null_count else None
        return Fields(self._names, [Column(array)], len(data), nulls, is_tuple=self._is_key)

    def write(self, column: Column) -> pa.Array:
        kind = self._column.kind
        found = one_column(column, self._column)
        array = None if found is None or found.plain_type != ARROW[kind] else found.array
        if array is None:
            return super().write(column)
        if kind in (STRING, BYTES):
            data = array.cast(pa.binary())
        else:
            data = big_endian(array, SHAPES[kind][0])
            if data is None:
                return super().write(column)
        return masked(data, column.is_null)


def one_column(column: Column, wanted: SqlColumn) -> Column | None:
    if not isinstance(column, Fields):
        return None
    return column.columns[0] if column.is_tuple and len(column.columns) == 1 else column.field(wanted.name)


def big_endian(numbers: pa.Array, form: str) -> pa.Array | None:
    """Numbers as Java writes them; None where one does not fit."""
    plain = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    data = plain.astype(form)
    if data.dtype.kind == "i" and (data != plain).any():
        return None
    size = data.dtype.itemsize
    offsets = np.arange(0, size * (len(plain) + 1), size, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    found = pa.Array.from_buffers(pa.binary(), len(plain), buffers)
    return masked(found, numbers.is_null().to_numpy(zero_copy_only=False)) if numbers.null_count else found


class DelimitedForm(CodecForm):
    """Cells in the order of the columns. A batch with quotes or line ends is read row by row."""

    def __init__(
        self,
        columns: Sequence[SqlColumn],
        read_row: ReadRow,
        write_row: WriteRow,
        *,
        is_key: bool,
        delimiter: str,
    ) -> None:
        super().__init__(columns, read_row, write_row, is_key=is_key, name="DELIMITED")
        self._delimiter = DELIMITERS.get(delimiter.upper(), delimiter)
        kinds = {each.kind for each in columns}
        self._is_plain = kinds <= {STRING, INTEGER, BIGINT, DOUBLE} and self._delimiter.isascii()
        self.python = None if self._is_plain else self.python

    def read(self, data: pa.Array) -> tuple[Column, Bad]:
        cells = self._cells(data) if self._is_plain and len(data) and not data.null_count else None
        if cells is None:
            return super().read(data)
        made = []
        for column, texts in zip(self._columns, cells, strict=True):
            array = of_cells(texts, column.kind)
            if array is None:
                return super().read(data)
            made.append(Column(array))
        return Fields(self._names, made, len(data), is_tuple=self._is_key), {}

    def _cells(self, data: pa.Array) -> list[pa.Array] | None:
        """The cells of each column; None where they are not plain."""
        try:
            texts = data.cast(pa.string())
        except pa.ArrowInvalid:
            return None
        _, offsets, buffer = texts.buffers()
        if buffer is None:
            return None
        bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        some = np.frombuffer(buffer, np.uint8)[bounds[0] : bounds[-1]]
        if int(np.diff(bounds).max()) > csv.field_size_limit():
            return None
        if ((some == 0x22) | (some == 0x0A) | (some == 0x0D) | (some == 0)).any():
            return None
        lists = pc.split_pattern(texts, self._delimiter)
        count = len(self._columns)
        if not pc.all(pc.equal(pc.list_value_length(lists), count)).as_py():
            return None
        flat = lists.flatten()
        return [flat.take(pa.array(np.arange(place, len(flat), count))) for place in range(count)]

    def write(self, column: Column) -> pa.Array:
        texts = self._texts(column) if self._is_plain and len(self._columns) > 1 else None
        if texts is None or self._delimiter != ",":
            return super().write(column)
        data = pc.binary_join_element_wise(*texts, ",").cast(pa.binary())
        return masked(data, column.is_null)

    def _texts(self, column: Column) -> list[pa.Array] | None:
        if not isinstance(column, Fields):
            return None
        found = []
        for place, wanted in enumerate(self._columns):
            given = column.columns[place] if column.is_tuple else column.field(wanted.name)
            if wanted.kind == DOUBLE or given is None or given.plain_type != ARROW[wanted.kind]:
                return None
            array = given.array
            if wanted.kind == STRING:
                if pc.any(pc.match_substring_regex(array, '[",\r\n]'), min_count=0).as_py():
                    return None
                found.append(array.fill_null(""))
            else:
                found.append(array.cast(pa.string()).fill_null(""))
        return found


def of_cells(texts: pa.Array, kind: SqlType) -> pa.Array | None:
    """Cells as values, empty ones as null; None where a cell is not plainly of the type."""
    given = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    if kind == STRING:
        return given
    pattern = REAL_CELL if kind == DOUBLE else WHOLE_CELL[kind]
    if not pc.all(pc.match_substring_regex(given, pattern), min_count=0).as_py():
        return None
    return given.cast(ARROW[kind])
