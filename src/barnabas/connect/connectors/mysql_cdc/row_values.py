"""Images of rows in the binary log, read with the columns of their table.

In: a rows event, its table map, the columns at that time. Out: a tuple for each image with values as a query
would give them: numbers, texts (times as texts in UTC), bytes; ABSENT for columns that are not in the image.
Pure.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from barnabas.connect.connectors.mysql_cdc.binlog import Rows, TableMap
from barnabas.connect.connectors.mysql_cdc.charsets import encoding_of
from barnabas.connect.connectors.mysql_cdc.tables import ColumnDef

ABSENT = object()  # binlog_row_image is not FULL: the image does not have the column
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
Reader = Callable[[bytes, int], tuple[Any, int]]
FORMS = {1: "b", 2: "h", 3: "i", 8: "q"}


def images(
    rows: Rows, readers: list[Reader]
) -> Iterator[tuple[tuple[Any, ...] | None, tuple[Any, ...] | None]]:
    """(before, after) of each changed row."""
    data, place = rows.images, 0
    while place < len(data):
        before = after = None
        if rows.op in "ud":
            before, place = image(data, place, rows.columns, rows.present, readers)
        if rows.op in "uc":
            after, place = image(data, place, rows.columns, rows.present_after, readers)
        yield before, after


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
    if kind in (249, 250, 251, 252, 255):
        return sized(meta or 4, bytes if kind == 255 else text_of(column))
    if kind == 245:
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


def decimals(precision: int, scale: int) -> Reader:
    """MySQL's packed decimals: groups of nine digits in four bytes, the first bit is the sign."""
    digits = precision - scale
    head, tail = digits % 9, scale % 9
    widths = [DIGIT_BYTES[head]] if head else []
    widths += [4] * (digits // 9) + [4] * (scale // 9) + ([DIGIT_BYTES[tail]] if tail else [])
    counts = ([head] if head else []) + [9] * (digits // 9) + [9] * (scale // 9) + ([tail] if tail else [])
    size = sum(widths)

    def read(data: bytes, place: int) -> tuple[Decimal, int]:
        raw = bytearray(data[place : place + size])
        is_negative = not raw[0] & 0x80
        raw[0] ^= 0x80
        if is_negative:
            raw = bytearray(each ^ 0xFF for each in raw)
        found, at = "", 0
        for width, count in zip(widths, counts, strict=True):
            found += str(int.from_bytes(raw[at : at + width], "big")).rjust(count, "0")
            at += width
        value = Decimal(int(found or "0")).scaleb(-scale)
        return (-value if is_negative else value), place + size

    return read


# -- times -----------------------------------------------------------------------------------------


def fraction(data: bytes, place: int, digits: int) -> tuple[int, int]:
    """Microseconds, and the place behind them."""
    width = (digits + 1) // 2
    value = int.from_bytes(data[place : place + width], "big")
    return value * 10 ** (6 - width * 2), place + width


def shown(micros: int, digits: int) -> str:
    return f".{micros:06d}"[: digits + 1] if digits else ""


def times(kind: int, meta: int) -> Reader:
    known: dict[int, Reader] = {
        7: lambda data, place: (moment(struct.unpack_from("<I", data, place)[0], 0, 0), place + 4),
        17: lambda data, place: timestamp2(data, place, meta),
        10: lambda data, place: (day(int.from_bytes(data[place : place + 3], "little")), place + 3),
        14: lambda data, place: (day(int.from_bytes(data[place : place + 3], "little")), place + 3),
        11: lambda data, place: (old_time(data[place : place + 3]), place + 3),
        19: lambda data, place: time2(data, place, meta),
        12: lambda data, place: (old_datetime(struct.unpack_from("<Q", data, place)[0]), place + 8),
        18: lambda data, place: datetime2(data, place, meta),
    }  # fmt: skip
    return known[kind]


def moment(seconds: int, micros: int, digits: int) -> str:
    if not seconds and not micros:
        return "0000-00-00 00:00:00" + shown(0, digits)
    return (EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S") + shown(micros, digits)


def timestamp2(data: bytes, place: int, digits: int) -> tuple[str, int]:
    seconds = struct.unpack_from(">I", data, place)[0]
    micros, end = fraction(data, place + 4, digits)
    return moment(seconds, micros, digits), end


def day(value: int) -> str:
    return f"{value >> 9:04d}-{value >> 5 & 15:02d}-{value & 31:02d}"


def old_time(data: bytes) -> str:
    value = int.from_bytes(data, "little", signed=True)
    sign, value = ("-", -value) if value < 0 else ("", value)
    return f"{sign}{value // 10000:02d}:{value // 100 % 100:02d}:{value % 100:02d}"


def old_datetime(value: int) -> str:
    date, clock = divmod(value, 1_000_000)
    return (
        f"{date // 10000:04d}-{date // 100 % 100:02d}-{date % 100:02d}"
        f" {clock // 10000:02d}:{clock // 100 % 100:02d}:{clock % 100:02d}"
    )


def time2(data: bytes, place: int, digits: int) -> tuple[str, int]:
    width = (digits + 1) // 2
    raw = int.from_bytes(data[place : place + 3 + width], "big") - (1 << (24 + 8 * width - 1))
    sign, raw = ("-", -raw) if raw < 0 else ("", raw)
    micros = (raw & ((1 << 8 * width) - 1)) * 10 ** (6 - width * 2)
    clock = raw >> 8 * width
    text = f"{sign}{clock >> 12 & 0x3FF:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}"
    return text + shown(micros, digits), place + 3 + width


def datetime2(data: bytes, place: int, digits: int) -> tuple[str, int]:
    value = int.from_bytes(data[place : place + 5], "big") - 0x8000000000
    micros, end = fraction(data, place + 5, digits)
    date, clock = value >> 17, value & 0x1FFFF
    months = date >> 5
    text = f"{months // 13:04d}-{months % 13:02d}-{date & 31:02d}"
    return f"{text} {clock >> 12:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}{shown(micros, digits)}", end


def json_text(value: bytes) -> str | None:
    """MySQL's binary JSON as text."""
    from pymysqlreplication.json_binary import parse_json

    if not value:
        return None
    return json.dumps(plain(parse_json(value[0], value[1:])), separators=(",", ":"), ensure_ascii=False)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {each.decode() if isinstance(each, bytes) else each: plain(one) for each, one in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Decimal):
        return float(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
