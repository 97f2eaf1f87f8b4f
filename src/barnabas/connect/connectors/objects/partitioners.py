"""Partitioners: which folder each record goes to (`partition=0`, `country=DE`, `year=2026/month=11`).

In: records. Out: one text for each. Times are formatted once for each period, not for each record. Does not
know: files, offsets.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from math import gcd
from typing import Any

import numpy as np

from barnabas.connect.connectors.objects.formats import plain
from barnabas.connect.data import Records
from barnabas.connect.plugins import ConnectError

Encoder = Callable[[Records], Any]  # numpy array of texts
Extractor = Callable[[Records], Any]  # numpy array of int64 in milliseconds
EPOCH, LOCAL_EPOCH = datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1)
MS = timedelta(milliseconds=1)
QUARTER_MS = 900_000
DAILY, HOURLY = "'year'=YYYY/'month'=MM/'day'=dd", "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"
SEGMENT_BYTES_MAX = 255  # of most file systems, and of HDFS
WORDS = {"E": "%a %A", "M": "%b %B"}  # short and long
NUMBERS = {"Y": "%Y", "y": "%Y", "M": "%m", "d": "%d", "D": "%j", "H": "%H", "h": "%I", "m": "%M", "s": "%S",
           "x": "%G", "w": "%V", "e": "%u"}  # fmt: skip
Piece = Callable[[datetime], str]


def translated(pattern: str) -> tuple[Piece, ...]:
    """Joda's pattern as functions of a local time: quotes are literal, other letters must be known."""
    found: list[Piece] = []
    rest = pattern
    while rest:
        if rest[0] == "'":
            literal, _, rest = rest[1:].partition("'")
            found.append(partial(same, literal or "'"))
        elif rest[0].isalpha():
            run = re.match(rf"{rest[0]}+", rest)
            assert run is not None
            found.append(piece_of(rest[0], len(run[0]), pattern))
            rest = rest[run.end() :]
        else:
            found.append(partial(same, rest[0]))
            rest = rest[1:]
    return tuple(found)


def same(text: str, _: datetime) -> str:
    return text


def shown(form: str, at: datetime) -> str:
    return at.strftime(form)


def piece_of(letter: str, count: int, pattern: str) -> Piece:
    """One field of a pattern: numbers have at least so many digits, words are short up to three letters."""
    if letter in WORDS and (letter == "E" or count > 2):
        short, long = WORDS[letter].split()
        return partial(shown, short if count < 4 else long)
    if letter == "a":
        return partial(shown, "%p")
    if letter == "S":
        return lambda at: f"{at.microsecond:06d}".ljust(count, "0")[:count]
    if letter not in NUMBERS:
        known = ", ".join(sorted({*NUMBERS, *WORDS, "S", "a"}))
        raise ValueError(f"the letter {letter!r} of {pattern!r} is none of {known}; quote texts")
    form = NUMBERS[letter]
    if letter in "Yyx" and count == 2:
        return lambda at: f"{int(at.strftime(form)) % 100:02d}"
    return lambda at: f"{int(at.strftime(form)):0{count}d}"


def by_kafka_partition(records: Records) -> Any:
    return np.array([f"partition={each}" for each in records.partitions.to_pylist()], dtype=object)


@dataclass(frozen=True, slots=True)
class ByFields:
    names: tuple[str, ...]

    def __call__(self, records: Records) -> Any:
        columns = [[f"{name}={text_of(one)}" for one in field_of(records, name)] for name in self.names]
        return np.array([checked_folder("/".join(each)) for each in zip(*columns, strict=True)], dtype=object)


def text_of(value: Any) -> str:
    """A value in the name of a folder, as Java writes it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(plain(value))


def checked_folder(folder: str) -> str:
    """Refuse folders that values would lead out of their topic, and those that no store takes."""
    for each in folder.split("/"):
        if each in ("", ".", "..") or len(each.encode()) > SEGMENT_BYTES_MAX or not each.isprintable():
            raise ConnectError(
                f"{folder[:300]!r} is no name of a folder: a part of it is empty, . or .., has signs that"
                f" cannot be shown, or more than {SEGMENT_BYTES_MAX} bytes"
            )
    return folder


@dataclass(frozen=True, slots=True)
class ByTime:
    pieces: tuple[Piece, ...]
    zone: tzinfo
    duration_ms: int
    extract: Extractor

    def __call__(self, records: Records) -> Any:
        span = gcd(self.duration_ms, QUARTER_MS)  # zones lie quarters of an hour apart
        unique, codes = np.unique(self.extract(records) // span, return_inverse=True)
        return np.array([self._text(int(each) * span) for each in unique], dtype=object)[codes]

    def _text(self, at_ms: int) -> str:
        """The folder of a time: that of the beginning of its period, which is counted in local time."""
        try:
            local = (EPOCH + at_ms * MS).astimezone(self.zone).replace(tzinfo=None)
        except OverflowError:
            raise ConnectError(f"the time {at_ms} is no year that a folder can have: milliseconds?") from None
        start = LOCAL_EPOCH + (local - LOCAL_EPOCH) // MS // self.duration_ms * self.duration_ms * MS
        return "".join(each(start) for each in self.pieces)


def wall_clock(records: Records) -> Any:
    return np.full(len(records), int(time.time() * 1000), np.int64)


def record_time(records: Records) -> Any:
    if records.timestamps.null_count:
        raise ConnectError("timestamp.extractor=Record, but records without a timestamp came")
    return records.timestamps.to_numpy(zero_copy_only=False).astype(np.int64)


@dataclass(frozen=True, slots=True)
class FieldTime:
    name: str

    def __call__(self, records: Records) -> Any:
        return np.array([self._ms(one) for one in field_of(records, self.name)], np.int64)

    def _ms(self, value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                pass
        if isinstance(value, datetime):
            return ((value if value.tzinfo else value.replace(tzinfo=UTC)) - EPOCH) // MS
        raise ConnectError(
            f"timestamp.field {self.name!r}: {value!r} is neither milliseconds nor a time in ISO form"
        )


def field_of(records: Records, path: str) -> list[Any]:
    """The values of a field; dots lead into structs."""
    values = records.values.pylist()
    for name in path.split("."):
        try:
            values = [value[name] for value in values]
        except (KeyError, TypeError):
            raise ConnectError(f"values have no field {path!r}, which the partitioner needs") from None
    return values
