"""Packed decimals and times: of columns in the binary log, and inside of JSON values. Pure."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from barnabas.connect.data import DECIMAL_CONTEXT

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
Reader = Callable[[bytes, int], tuple[Any, int]]


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
        value = Decimal(int(found or "0")).scaleb(-scale, DECIMAL_CONTEXT)
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
    return whole_datetime(value) + shown(micros, digits), end


def whole_datetime(value: int) -> str:
    """A date and a time of day in seconds: seventeen bits for the time, five for the day."""
    date, clock = value >> 17, value & 0x1FFFF
    months = date >> 5
    text = f"{months // 13:04d}-{months % 13:02d}-{date & 31:02d}"
    return f"{text} {clock >> 12:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}"


# -- inside of JSON, as one number ------------------------------------------------------------------


def datetime_of(number: int) -> str:
    """A date and a time of day, with microseconds where there are some."""
    value, micros = number >> 24, number & 0xFFFFFF
    return whole_datetime(value) + shown(micros, 6 if micros else 0)


def time_of(number: int) -> str:
    sign, number = ("-", -number) if number < 0 else ("", number)
    clock, micros = number >> 24, number & 0xFFFFFF
    text = f"{sign}{clock >> 12 & 0x3FF:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}"
    return text + shown(micros, 6 if micros else 0)
