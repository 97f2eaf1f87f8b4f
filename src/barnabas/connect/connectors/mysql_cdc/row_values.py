"""Images of rows in the binary log, read with the columns of their table.

In: a rows event, its table map, the columns at that time. Out: a tuple for each image with values as a query
would give them: numbers, texts (times as texts in UTC), bytes; ABSENT for columns that are not in the image.
Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

from barnabas.connect.connectors.mysql_cdc import json_values
from barnabas.connect.connectors.mysql_cdc.binlog import Rows, TableMap, packed
from barnabas.connect.connectors.mysql_cdc.charsets import encoding_of
from barnabas.connect.connectors.mysql_cdc.packed_values import Reader, decimals, times
from barnabas.connect.connectors.mysql_cdc.tables import ColumnDef

ABSENT = object()  # binlog_row_image is not FULL: the image does not have the column
FORMS = {1: "b", 2: "h", 3: "i", 8: "q"}
JSON = 245
PARTIAL_JSON = 1  # an option of the values of an update
Image = tuple[Any, ...]
Pair = tuple[Image | None, Image | None]


def images(rows: Rows, mapped: TableMap, readers: list[Reader]) -> Iterator[Pair]:
    """(before, after) of each changed row."""
    if rows.is_partial:
        yield from partial_images(rows, mapped, readers)
        return
    data, place = rows.images, 0
    while place < len(data):
        before = after = None
        if rows.op in "ud":
            before, place = image(data, place, rows.columns, rows.present, readers)
        if rows.op in "uc":
            after, place = image(data, place, rows.columns, rows.present_after, readers)
        yield before, after


def partial_images(rows: Rows, mapped: TableMap, readers: list[Reader]) -> Iterator[Pair]:
    """Updates whose new JSON values may be told as differences from the old ones."""
    documents = [place for place, kind in enumerate(mapped.types) if kind == JSON]
    raw = [sized(mapped.metadata[place], bytes) if place in documents else each
           for place, each in enumerate(readers)]  # fmt: skip
    data, place = rows.images, 0
    while place < len(data):
        before, place = image(data, place, rows.columns, rows.present, raw)
        options, place = packed(data, place)
        bits = b"\0" * len(documents)
        if options & PARTIAL_JSON:
            width = (len(documents) + 7) // 8
            bits, place = data[place : place + width], place + width
        after, place = image(data, place, rows.columns, rows.present_after, raw)
        old, new = list(before), list(after)
        for number, column in enumerate(documents):
            is_told = bool(bits[number >> 3] & (1 << (number & 7)))
            new[column] = document_of(before[column], after[column], is_difference=is_told)
            old[column] = document_of(None, before[column], is_difference=False)
        yield tuple(old), tuple(new)


def document_of(before: Any, after: Any, *, is_difference: bool) -> Any:
    """The text of a JSON column. In: bytes of its images, None for null, ABSENT."""
    if after is None or after is ABSENT:
        return after
    if not is_difference:
        return json_text(after)
    if before is None or before is ABSENT:
        raise ValueError("the log has a part of a JSON value, and not the value before it")
    return json_values.text_of(json_values.changed(json_values.tree_of(before), after))


def image(
    data: bytes, place: int, count: int, present: bytes, readers: list[Reader]
) -> tuple[tuple[Any, ...], int]:
    there = [each for each in range(count) if present[each >> 3] & (1 << (each & 7))]
    nulls = data[place : place + (len(there) + 7) // 8]
    place += len(nulls)
    values: list[Any] = [ABSENT] * count
    for number, column in enumerate(there):
        if nulls[number >> 3] & (1 << (number & 7)):
            values[column] = None
        else:
            values[column], place = readers[column](data, place)
    return tuple(values), place


def readers_of(mapped: TableMap, columns: tuple[ColumnDef, ...]) -> list[Reader]:
    """A reader for each column. ValueError if the table does not have as many."""
    if len(columns) != len(mapped.types):
        raise ValueError(
            f"the log has {len(mapped.types)} columns of {mapped.database}.{mapped.table}, the schema history"
            f" {len(columns)} ({', '.join(each.name for each in columns)})"
        )
    found = zip(mapped.types, mapped.metadata, columns, strict=True)
    return [reader_of(kind, meta, column) for kind, meta, column in found]


def reader_of(kind: int, meta: int, column: ColumnDef) -> Reader:
    if kind in FORMS:
        return whole(struct.Struct("<" + (FORMS[kind].upper() if column.unsigned else FORMS[kind])))
    if kind == 9:
        return medium(is_signed=not column.unsigned)
    if kind in (4, 5):
        return whole(struct.Struct("<f" if kind == 4 else "<d"))
    if kind == 246:
        return decimals(meta >> 8, meta & 0xFF)
    if kind == 13:
        return lambda data, place: (1900 + data[place] if data[place] else 0, place + 1)
    if kind in (7, 10, 11, 12, 17, 18, 19, 14):
        return times(kind, meta)
    if kind == 16:
        size = (meta >> 8) + ((meta & 0xFF) > 0)
        return lambda data, place: (data[place : place + size], place + size)
    if kind == 254:
        return strings(meta, column)
    if kind in (15, 253, 140, 141):
        return sized(2 if meta > 255 else 1, text_of(column))
    if kind in (242, 249, 250, 251, 252, 255):
        return sized(meta or 4, bytes if kind in (242, 255) else text_of(column))
    if kind == JSON:
        return sized(meta, json_text)
    raise ValueError(f"the column {column.name} has the type {kind} in the log, which is not known")


def whole(form: struct.Struct) -> Reader:
    return lambda data, place: (form.unpack_from(data, place)[0], place + form.size)


def medium(*, is_signed: bool) -> Reader:
    return lambda data, place: (
        int.from_bytes(data[place : place + 3], "little", signed=is_signed),
        place + 3,
    )


def sized(width: int, convert: Callable[[bytes], Any]) -> Reader:
    """Bytes behind their length."""

    def read(data: bytes, place: int) -> tuple[Any, int]:
        start = place + width
        stop = start + int.from_bytes(data[place:start], "little")
        return convert(data[start:stop]), stop

    return read


def text_of(column: ColumnDef) -> Callable[[bytes], Any]:
    """Texts of a column; bytes where it has no character set."""
    if column.type == "BINARY" and column.length:
        length = column.length
        return lambda value: value.ljust(length, b"\0")  # the log leaves zeros at the end out
    if not column.charset or column.charset == "binary":
        return bytes
    encoding = encoding_of(column.charset)
    return lambda value: value.decode(encoding, "replace")


def strings(meta: int, column: ColumnDef) -> Reader:
    """CHAR, BINARY, ENUM and SET: the metadata has the true type, and bits of the length in it."""
    high, low = meta >> 8, meta & 0xFF
    if high in (247, 248):
        return labelled(column, low, is_set=high == 248)
    length = low | (((high & 0x30) ^ 0x30) << 4)
    return sized(2 if length > 255 else 1, text_of(column))


def labelled(column: ColumnDef, width: int, *, is_set: bool) -> Reader:
    labels = column.labels

    def read(data: bytes, place: int) -> tuple[Any, int]:
        number = int.from_bytes(data[place : place + width], "little")
        if is_set:
            chosen = [label for bit, label in enumerate(labels) if number >> bit & 1]
            return ",".join(chosen), place + width
        if number > len(labels):
            raise ValueError(f"the column {column.name} has label {number} of {len(labels)}: {labels}")
        return labels[number - 1] if number else "", place + width

    return read


def json_text(value: bytes) -> str | None:
    """MySQL's binary JSON as text."""
    return json_values.text_of(json_values.tree_of(value)) if value else None
