"""PostgreSQL's dates and times as Debezium's schemas, and their texts read into them. Pure.

Years are not limited to those of Python: `12024-03-15` and `0044-03-15 BC` are days like others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from barnabas.connect.connectors.databases.days import DAY, Moment, days_of
from barnabas.connect.data import DATE, TIME, TIMESTAMP, Schema, Type

Read = Callable[[str], object]
MONTH = int(365.25 / 12 * DAY)
CLOCK = re.compile(r"([+-]?)(\d+):(\d+):(\d+)(?:\.(\d+))?$")
INFINITY, MINUS_INFINITY = "infinity", "-infinity"
FAR_MS = {
    INFINITY: 9223372036825200,
    MINUS_INFINITY: -9223372036832400,
}  # the ends of time of PostgreSQL's JDBC
FAR_DAYS = {INFINITY: -2147472692, MINUS_INFINITY: -2147472691}  # what Debezium sends for them
NANOS_MAX = 2**63 - 1


def named(kind: Type, name: str, **parameters: str) -> Schema:
    return Schema(type=kind, name=name, version=1, parameters=parameters)


def of_time(name: str, kind: Type = Type.INT64) -> Schema:
    return named(kind, f"io.debezium.time.{name}")


def date_of(day: int) -> str:
    """A day as ISO 8601 writes it: years beyond four digits have a sign."""
    cycles, rest = divmod(day - YEAR_0, 146_097)
    found = date.fromordinal(rest + date(400, 1, 1).toordinal())
    year = found.year - 400 + cycles * 400
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{'-' if year < 0 else '+'}{abs(year):04d}"
    return f"{shown}-{found.month:02d}-{found.day:02d}"


YEAR_0 = days_of(0, 1, 1)


def clock_of(micros: int, digits: int = 0) -> str:
    """A time of day. With `digits` the fraction has so many, without as few as it needs."""
    seconds, part = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    shown = f"{part:06d}"[:digits] if digits else f"{part:06d}".rstrip("0")
    return f"{text}.{shown}" if shown else text


def temporal(kind: str, modifier: int, mode: str) -> tuple[Schema, Read]:
    """The schema of a column of this type (date, time, timetz, timestamp, timestamptz), and its reader."""
    if kind == "timestamptz":
        return of_time("ZonedTimestamp", Type.STRING), lambda text: zoned(text, modifier)
    if kind == "timetz":
        return of_time("ZonedTime", Type.STRING), zoned_time
    if kind == "date":
        return dates(mode)
    return times(modifier, mode) if kind == "time" else stamps(modifier, mode)


def dates(mode: str) -> tuple[Schema, Read]:
    if mode == "isostring":
        return of_time("IsoDate", Type.STRING), lambda text: iso_date(text)
    return (DATE if mode == "connect" else of_time("Date", Type.INT32)), days


def times(modifier: int, mode: str) -> tuple[Schema, Read]:
    if mode == "isostring":
        return of_time("IsoTime", Type.STRING), lambda text: clock_of(micros_time(text) % DAY) + "Z"
    if mode == "connect":
        return TIME, lambda text: micros_time(text) // 1000
    if mode == "nanoseconds":
        return of_time("NanoTime"), lambda text: micros_time(text) * 1000
    if mode == "adaptive" and 0 <= modifier <= 3:
        return of_time("Time", Type.INT32), lambda text: micros_time(text) // 1000
    return of_time("MicroTime"), micros_time


def stamps(modifier: int, mode: str) -> tuple[Schema, Read]:
    if mode == "isostring":
        return of_time("IsoTimestamp", Type.STRING), iso_stamp
    if mode == "connect":
        return TIMESTAMP, millis
    if mode == "nanoseconds":
        return of_time("NanoTimestamp"), nanos
    if mode.startswith("adaptive") and 0 <= modifier <= 3:
        return of_time("Timestamp"), millis
    return of_time("MicroTimestamp"), micros


def micros(text: str) -> int:
    """Microseconds of a timestamp as if it were UTC."""
    return FAR_MS[text] * 1000 if text in FAR_MS else Moment.of(text).total


def millis(text: str) -> int:
    return FAR_MS[text] if text in FAR_MS else Moment.of(text).total // 1000


def nanos(text: str) -> int | None:
    """Nanoseconds; None for a time that 64 bits cannot hold, as with Debezium."""
    if text in FAR_MS:
        return NANOS_MAX if text == INFINITY else -NANOS_MAX - 1
    found = Moment.of(text).total * 1000
    return found if -NANOS_MAX <= found <= NANOS_MAX else None


def days(text: str) -> int:
    return FAR_DAYS[text] if text in FAR_DAYS else Moment.of(text).day


def iso_date(text: str) -> str:
    return date_of(days(text)) + "Z"


def iso_stamp(text: str) -> str:
    day, part = divmod(micros(text), DAY)
    return f"{date_of(day)}T{clock_of(part)}Z"


def micros_time(text: str) -> int:
    if text.startswith("24:"):
        return DAY
    value = time.fromisoformat(text)
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def zoned(text: str, digits: int) -> str:
    if text in FAR_MS:
        return text
    found = Moment.of(text)
    return f"{date_of(found.day)}T{clock_of(found.micros, digits if digits >= 0 else 6)}Z"


def zoned_time(text: str) -> str:
    if text.startswith("24:"):
        text = "00" + text[2:]
    value = datetime.combine(date(2000, 1, 1), time.fromisoformat(text)).astimezone(UTC).time()
    return (
        clock_of(((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond) + "Z"
    )


@dataclass(frozen=True, slots=True)
class Span:
    """An interval in PostgreSQL's own form: `1 year 2 mons 3 days 04:05:06.7`."""

    months: int
    days: int
    micros: int

    @staticmethod
    def of(text: str) -> Span:
        parts = {"year": 0, "mon": 0, "day": 0}
        for number, unit in re.findall(r"([+-]?\d+) (year|mon|day)s?", text):
            parts[unit] += int(number)
        part = 0
        if clock := CLOCK.search(text):
            sign, hours, minutes, seconds, fraction = clock.groups()
            part = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1_000_000
            part += int((fraction or "").ljust(6, "0")[:6] or 0)
            part = -part if sign == "-" else part
        return Span(parts["year"] * 12 + parts["mon"], parts["day"], part)


def micro_duration(text: str) -> int:
    span = Span.of(text)
    return int((span.months * (365.25 / 12) + span.days) * DAY) + span.micros


def iso_duration(text: str) -> str:
    span = Span.of(text)
    years, months = whole(span.months, 12)
    seconds, part = whole(span.micros, 1_000_000)
    minutes, seconds = whole(seconds, 60)
    hours, minutes = whole(minutes, 60)
    sign = "-" if span.micros < 0 and seconds == 0 and part else ""
    fraction = f".{abs(part):06d}".rstrip("0").rstrip(".")
    return f"P{years}Y{months}M{span.days}DT{hours}H{minutes}M{sign}{seconds}{fraction}S"


def whole(value: int, unit: int) -> tuple[int, int]:
    """Quotient and rest, both with the sign of the value."""
    quotient, rest = divmod(abs(value), unit)
    return (-quotient, -rest) if value < 0 else (quotient, rest)
