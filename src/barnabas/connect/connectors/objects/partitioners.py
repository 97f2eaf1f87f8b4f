"""Partitioners: which folder each record goes to (`partition=0`, `country=DE`, `year=2026/month=11`).

In: records. Out: one text for each. Times are formatted once for each period, not for each record. Does not
know: files, offsets.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

import numpy as np

from barnabas.connect.connectors.objects.formats import plain
from barnabas.connect.data import Records
from barnabas.connect.plugins import ConnectError

Encoder = Callable[[Records], Any]  # numpy array of texts
Extractor = Callable[[Records], Any]  # numpy array of int64 in milliseconds
DAILY, HOURLY = "'year'=YYYY/'month'=MM/'day'=dd", "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"
HOUR_MS = 3_600_000
LETTERS = {"Y": "%Y", "y": "%Y", "M": "%m", "d": "%d", "H": "%H", "m": "%M", "s": "%S", "D": "%j"}


def translated(pattern: str) -> str:
    """Joda's letters as strftime's: quotes are literal, other letters must be known."""
    found, rest = [], pattern
    while rest:
        if rest[0] == "'":
            literal, _, rest = rest[1:].partition("'")
            found.append((literal or "'").replace("%", "%%"))
        elif rest[0].isalpha():
            run = re.match(rf"{rest[0]}+", rest)
            assert run is not None
            if rest[0] not in LETTERS:
                raise ValueError(
                    f"the letter {rest[0]!r} of {pattern!r} is none of {', '.join(LETTERS)}; quote texts"
                )
            found.append(LETTERS[rest[0]])
            rest = rest[run.end() :]
        else:
            found.append(rest[0].replace("%", "%%"))
            rest = rest[1:]
    return "".join(found)


def by_kafka_partition(records: Records) -> Any:
    return np.array([f"partition={each}" for each in records.partitions.to_pylist()], dtype=object)


@dataclass(frozen=True, slots=True)
class ByFields:
    names: tuple[str, ...]

    def __call__(self, records: Records) -> Any:
        columns = [[f"{name}={plain(one)}" for one in field_of(records, name)] for name in self.names]
        return np.array(["/".join(each) for each in zip(*columns, strict=True)], dtype=object)


@dataclass(frozen=True, slots=True)
class ByTime:
    form: str  # of strftime
    zone: tzinfo
    duration_ms: int
    extract: Extractor

    def __call__(self, records: Records) -> Any:
        periods = self.extract(records) // self.duration_ms
        unique, codes = np.unique(periods, return_inverse=True)
        return np.array([self._text(int(each)) for each in unique], dtype=object)[codes]

    def _text(self, period: int) -> str:
        return (
            datetime.fromtimestamp(period * self.duration_ms / 1000, UTC)
            .astimezone(self.zone)
            .strftime(self.form)
        )


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
            return int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000)
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
