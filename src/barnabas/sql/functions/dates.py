"""Functions of dates, times and timestamps. A TIMESTAMP is a datetime without a zone, in UTC."""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.date_patterns import (
    DATE_LETTERS,
    TIME_LETTERS,
    format_with,
    letters,
    parse_with,
    zone_named,
)
from barnabas.sql.functions.registry import function
from barnabas.sql.types.sql_types import EPOCH, of_millis, to_millis

UNITS = {
    "MILLISECONDS": dt.timedelta(milliseconds=1),
    "SECONDS": dt.timedelta(seconds=1),
    "MINUTES": dt.timedelta(minutes=1),
    "HOURS": dt.timedelta(hours=1),
    "DAYS": dt.timedelta(days=1),
}
EPOCH_DAY = EPOCH.date()
MIDNIGHT = dt.time()


def interval(unit: str, count: int) -> dt.timedelta:
    found = UNITS.get(unit.upper().rstrip("S") + "S")
    if found is None:
        raise EvaluationError(f"the unit {unit} is unknown: use one of {', '.join(UNITS)}")
    try:
        return found * count
    except OverflowError:
        raise EvaluationError(f"{count} {unit} is too long") from None


def moved(value: dt.datetime, by: dt.timedelta) -> dt.datetime:
    try:
        return value + by
    except OverflowError:
        raise EvaluationError("the result lies beyond the years 1 to 9999") from None


@function("FROM_DAYS")
def from_days(days: int) -> dt.date:
    return moved(EPOCH, interval("DAYS", days)).date()


@function("FROM_UNIXTIME")
def from_unixtime(millis: int) -> dt.datetime:
    try:
        return of_millis(millis)
    except OverflowError:
        raise EvaluationError(f"{millis} ms lies beyond the year 9999") from None


@function("UNIX_DATE")
def unix_date(date: dt.date | None = None) -> int:
    return ((date or dt.date.today()) - EPOCH_DAY).days


@function("UNIX_TIMESTAMP")
def unix_timestamp(value: dt.datetime | None = None) -> int:
    return int(time.time() * 1000) if value is None else to_millis(value)


@function("DATEADD")
def date_add(unit: str, count: int, date: dt.date) -> dt.date:
    return moved(dt.datetime.combine(date, MIDNIGHT), interval(unit, count)).date()


@function("DATESUB")
def date_sub(unit: str, count: int, date: dt.date) -> dt.date:
    return date_add(unit, -count, date)


@function("TIMEADD")
def time_add(unit: str, count: int, value: dt.time) -> dt.time:
    day = dt.timedelta(days=1)
    return (dt.datetime.combine(EPOCH_DAY, value) + interval(unit, count) % day).time()


@function("TIMESUB")
def time_sub(unit: str, count: int, value: dt.time) -> dt.time:
    return time_add(unit, -count, value)


@function("TIMESTAMPADD")
def timestamp_add(unit: str, count: int, value: dt.datetime) -> dt.datetime:
    return moved(value, interval(unit, count))


@function("TIMESTAMPSUB")
def timestamp_sub(unit: str, count: int, value: dt.datetime) -> dt.datetime:
    return moved(value, interval(unit, -count))


@function("CONVERT_TZ")
def convert_zone(value: dt.datetime, source: str, target: str) -> dt.datetime:
    there = value.replace(tzinfo=zone_named(source)).astimezone(zone_named(target))
    return there.replace(tzinfo=None)


@function("FORMAT_DATE")
def format_date(date: dt.date, pattern: str) -> str:
    if letters(pattern) & TIME_LETTERS:
        raise EvaluationError(f"the pattern {pattern!r} has a time of day, a DATE has none")
    return format_with(dt.datetime.combine(date, MIDNIGHT), pattern)


@function("FORMAT_TIME")
def format_time(value: dt.time, pattern: str) -> str:
    if letters(pattern) & DATE_LETTERS:
        raise EvaluationError(f"the pattern {pattern!r} has a date, a TIME has none")
    return format_with(dt.datetime.combine(EPOCH_DAY, value), pattern)


@function("FORMAT_TIMESTAMP")
def format_timestamp(value: dt.datetime, pattern: str, zone: str = "UTC") -> str:
    return format_with(value.replace(tzinfo=dt.UTC).astimezone(zone_named(zone)), pattern)


@function("PARSE_DATE")
def parse_date(text: str, pattern: str) -> dt.date:
    if letters(pattern) & TIME_LETTERS:
        raise EvaluationError(f"the pattern {pattern!r} has a time of day, a DATE has none")
    return parse_with(text, pattern)[0].date()


@function("PARSE_TIME")
def parse_time(text: str, pattern: str) -> dt.time:
    return parse_with(text, pattern)[0].time()


@function("PARSE_TIMESTAMP")
def parse_timestamp(text: str, pattern: str, zone: str = "UTC") -> dt.datetime:
    found, own = parse_with(text, pattern)
    return found.replace(tzinfo=own or zone_named(zone)).astimezone(dt.UTC).replace(tzinfo=None)


def never_null(name: str, *arguments: Any) -> None:
    if None in arguments:
        raise EvaluationError(f"{name} takes no null")


@function("STRINGTODATE")
def string_to_date(text: str, pattern: str) -> int:
    never_null("STRINGTODATE", text, pattern)
    return unix_date(parse_with(text, pattern)[0].date())


@function("DATETOSTRING")
def date_to_string(days: int, pattern: str) -> str:
    never_null("DATETOSTRING", days, pattern)
    return format_with(dt.datetime.combine(from_days(days), MIDNIGHT), pattern)


@function("STRINGTOTIMESTAMP")
def string_to_timestamp(text: str, pattern: str, zone: str = "UTC") -> int:
    never_null("STRINGTOTIMESTAMP", text, pattern)
    return to_millis(parse_timestamp(text, pattern, zone))


@function("TIMESTAMPTOSTRING")
def timestamp_to_string(millis: int, pattern: str, zone: str = "UTC") -> str:
    never_null("TIMESTAMPTOSTRING", millis, pattern)
    return format_timestamp(from_unixtime(millis), pattern, zone)
