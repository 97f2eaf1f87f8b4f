"""Times over columns: texts from moments and moments from texts, by patterns that are constants, in UTC.

A part of a pattern is computed as a number for each row; the row's own code makes its text, once for each
number that there is. Patterns of digits with a fixed width are read as a table of digits. Other patterns and
zones have no form; moments beyond the years 1 to 9999 are doubted. Does not know: trees.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.function_forms import Form, forms
from barnabas.sql.columns.text_forms import constant
from barnabas.sql.columns.values import full, masked, operand_of
from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.date_patterns import FORMATS, Token, tokens, zone_named
from barnabas.sql.types.sql_types import BIGINT, STRING, TIMESTAMP, WHOLE, SqlType
from barnabas.streams.columns.column import Column

Moments = Any  # a numpy array of datetime64[us]
Numbers = Any  # a numpy array of int64
MILLIS_MIN, MILLIS_MAX = -62_135_596_800_000, 253_402_300_799_999
SECOND_US, DAY_US = 1_000_000, 86_400_000_000
WIDTHS = {"y": 4, "u": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2}  # of the letters that can be read


def days(moments: Moments) -> Numbers:
    return moments.astype("M8[D]").astype(np.int64)


def of_day(size_us: int, count: int) -> Callable[[Moments], Numbers]:
    return lambda moments: moments.astype(np.int64) // size_us % count


def nothing(moments: Moments) -> Numbers:
    return np.zeros(len(moments), np.int64)


_YEARS: Callable[[Moments], Numbers] = lambda moments: moments.astype("M8[Y]").astype(np.int64)  # noqa: E731
_MONTHS: Callable[[Moments], Numbers] = lambda moments: moments.astype("M8[M]").astype(np.int64) % 12  # noqa: E731
_HOURS = of_day(3600 * SECOND_US, 24)
NUMBERS: dict[str, Callable[[Moments], Numbers]] = {
    "y": _YEARS,
    "u": _YEARS,
    "M": _MONTHS,
    "L": _MONTHS,
    "d": lambda moments: days(moments) - days(moments.astype("M8[M]")),
    "D": lambda moments: days(moments) - days(moments.astype("M8[Y]")),
    "E": lambda moments: days(moments) % 7,
    "e": lambda moments: days(moments) % 7,
    **dict.fromkeys("aHkKh", _HOURS),
    "m": of_day(60 * SECOND_US, 60),
    "s": of_day(SECOND_US, 60),
    "S": of_day(1000, 1000),
    **dict.fromkeys("XxZzVO", nothing),
}


def texts_of(moments: Moments, parts: Sequence[Token], zone: dt.tzinfo | None) -> pa.Array:
    found: list[Any] = []
    for part in parts:
        if not part.letter:
            found.append(pa.scalar(part.text))
            continue
        numbers = NUMBERS[part.letter](moments)
        least = int(numbers.min())
        example = np.full(int(numbers.max()) - least + 1, -1, np.int64)
        example[numbers - least] = np.arange(len(numbers))
        there = np.flatnonzero(example >= 0)
        place = np.zeros(len(example), np.int64)
        place[there] = np.arange(len(there))
        write = FORMATS[part.letter]
        values = [each.replace(tzinfo=zone) for each in moments[example[there]].tolist()]
        texts = pa.array([write(each, part.count) for each in values], pa.string())
        found.append(texts.take(pa.array(place[numbers - least])))
    return full(pc.binary_join_element_wise(*found, ""), len(moments))


def pattern_of(columns: Sequence[Column]) -> tuple[Token, ...] | None:
    """The parts of a constant pattern, where the zone behind it is UTC or missing."""
    pattern = constant(columns[0], str)
    if not pattern or not is_utc(columns[1:]):
        return None
    try:
        return tokens(pattern)
    except EvaluationError:
        return None


def is_utc(columns: Sequence[Column]) -> bool:
    try:
        return all(zone_named(constant(each, str) or "?") is dt.UTC for each in columns)
    except EvaluationError:
        return False


def written(frame: Frame, columns: Sequence[Column], moments: Moments, nulls: Any) -> Any:
    """Texts of moments by the pattern of the columns."""
    parts = pattern_of(columns)
    if parts is None or not len(frame):
        return None
    if any(part.letter and part.letter not in NUMBERS for part in parts):
        return None
    if any(part.letter == "S" and part.count > 3 for part in parts):
        return None
    return masked(texts_of(moments, parts, dt.UTC), nulls)


def moments_of(frame: Frame, column: Column) -> tuple[Moments, Any] | None:
    """The moments of a column of milliseconds, and where they are null."""
    operand = operand_of(column, BIGINT)
    if operand is None:
        return None
    array = full(operand, len(frame))
    unsure = pc.or_(pc.less(array, MILLIS_MIN), pc.greater(array, MILLIS_MAX))
    frame.doubt(unsure)
    sure = pc.if_else(unsure, pa.scalar(0, pa.int64()), array).fill_null(0).to_numpy(zero_copy_only=False)
    return (sure * 1000).astype("M8[us]"), array.is_null().to_numpy(zero_copy_only=False)


def timestamps_of(column: Column) -> tuple[Moments, Any] | None:
    """The same of a column of timestamps, which are objects."""
    items = column.items
    nulls = np.fromiter((each is None for each in items), np.bool_, len(items))
    if {*map(type, items)} - {dt.datetime, type(None)}:
        return None
    return np.array(items, "M8[us]") if not nulls.any() else without(items), nulls


def without(items: Sequence[Any]) -> Moments:
    return np.array([dt.datetime.min if each is None else each for each in items], "M8[us]")


@forms("TIMESTAMPTOSTRING")
def millis_to_text(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
    """A null is an error."""
    if kinds[0] not in WHOLE:
        return None

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        found = moments_of(frame, columns[0])
        if found is None:
            return None
        frame.doubt(found[1])
        return written(frame, columns[1:], *found)

    return form


@forms("FORMAT_TIMESTAMP")
def timestamp_to_text(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
    if kinds[0] != TIMESTAMP:
        return None

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        found = timestamps_of(columns[0])
        return None if found is None else written(frame, columns[1:], *found)

    return form


@forms("FROM_UNIXTIME")
def of_millis(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
    if kinds[0] not in WHOLE:
        return None

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        found = moments_of(frame, columns[0])
        return None if found is None else objects(*found)

    return form


def objects(moments: Moments, nulls: Any) -> Column:
    items = moments.tolist()
    for place in np.flatnonzero(nulls).tolist():
        items[place] = None
    return Column(items=items)


@forms("UNIX_TIMESTAMP")
def to_millis(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
    if kinds != (TIMESTAMP,):
        return None

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        found = timestamps_of(columns[0])
        return None if found is None else masked(pa.array(found[0].astype(np.int64) // 1000), found[1])

    return form


# ------------------------------------------------------------------------------------------- from texts


def layout_of(parts: Sequence[Token]) -> dict[str, tuple[int, int]] | None:
    """First digit and number of digits of each letter; None where widths may differ."""
    found: dict[str, tuple[int, int]] = {}
    at = 0
    for part in parts:
        if not part.letter:
            if not part.text.isascii():
                return None
            at += len(part.text)
            continue
        width = part.count if part.letter == "S" and part.count <= 3 else WIDTHS.get(part.letter)
        if part.count != width or part.letter in found:
            return None
        found[part.letter] = at, width
        at += width
    return found if len(found.keys() & {"y", "u"}) == 1 else None


def read(frame: Frame, columns: Sequence[Column]) -> tuple[Moments, Any] | None:
    """Moments of texts, and where texts are null. Texts that do not fit are doubted."""
    text, parts = operand_of(columns[0], STRING), pattern_of(columns[1:])
    layout = None if parts is None else layout_of(parts)
    if text is None or parts is None or layout is None or not len(frame):
        return None
    array = full(text, len(frame))
    shape = "".join(f"[0-9]{{{each.count}}}" if each.letter else re.escape(each.text) for each in parts)
    fits = pc.match_substring_regex(array, f"^{shape}$").fill_null(False)
    places = np.flatnonzero(fits.to_numpy(zero_copy_only=False))
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    wrong = ~nulls
    wrong[places] = False
    moments = np.zeros(len(frame), np.int64)
    if len(places):
        size = sum(each.count if each.letter else len(each.text) for each in parts)
        signs = pc.binary_join(pa.array([array.take(pa.array(places)).to_pylist()]), "")[0].as_py()
        table = np.frombuffer(signs.encode(), np.uint8).reshape(len(places), size).astype(np.int64) - ord("0")
        given = {
            letter: table[:, at : at + width] @ (10 ** np.arange(width)[::-1])
            for letter, (at, width) in layout.items()
        }
        moments[places], is_moment = computed(given, layout.get("S", (0, 0))[1])
        wrong[places[~is_moment]] = True
    frame.doubt(wrong)
    return moments.astype("M8[us]"), nulls | wrong


def computed(given: dict[str, Numbers], digits: int) -> tuple[Numbers, Any]:
    """Microseconds since 1970 of parts, and which of them are moments."""
    year = given["y"] if "y" in given else given["u"]
    zero = np.zeros(len(year), np.int64)
    month, day = given.get("M", zero + 1), given.get("d", zero + 1)
    hour, minute, second = (given.get(letter, zero) for letter in "Hms")
    fits = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (hour <= 23)
    fits &= (minute <= 59) & (second <= 59)
    months = np.where(fits, (year - 1970) * 12 + month - 1, 0).astype("M8[M]")
    first, last = days(months), days(months + 1)
    fits &= day <= last - first
    part = given.get("S", zero) * 10 ** (6 - digits)
    seconds = hour * 3600 + minute * 60 + second
    return np.where(fits, (first + day - 1) * DAY_US + seconds * SECOND_US + part, 0), fits


@forms("STRINGTOTIMESTAMP")
def text_to_millis(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
    """A null is an error."""

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        found = read(frame, columns)
        if found is None:
            return None
        frame.doubt(columns[0].is_null)
        return masked(pa.array(found[0].astype(np.int64) // 1000), found[1])

    return form


@forms("PARSE_TIMESTAMP")
def text_to_timestamp(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        found = read(frame, columns)
        return None if found is None else objects(*found)

    return form
