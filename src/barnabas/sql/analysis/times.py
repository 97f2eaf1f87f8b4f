"""ROWTIME from a column: of a record that is read, and of a row that is written.

BIGINT is milliseconds, TIMESTAMP is itself, STRING is read by a pattern, or as ISO text. A value without a
time raises NoTime: the row is dropped. Does not know: nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from barnabas.plans.windows import Windowed
from barnabas.sql.errors import EvaluationError
from barnabas.sql.expressions.casting import to_timestamp
from barnabas.sql.functions.date_patterns import parse_with
from barnabas.sql.types.sql_types import BIGINT, TIMESTAMP, SqlType, to_millis


class NoTime(EvaluationError):
    """A row whose column of ROWTIME has no time."""


def millis_of(value: Any, kind: SqlType, pattern: str | None) -> int:
    """NoTime for a value that is no time."""
    try:
        return _millis_of(value, kind, pattern)
    except NoTime:
        raise
    except (EvaluationError, ValueError, ArithmeticError) as error:
        raise NoTime(f"the column of ROWTIME is {value!r}: {error}") from error


def _millis_of(value: Any, kind: SqlType, pattern: str | None) -> int:
    if value is None:
        raise NoTime("the column of ROWTIME is null")
    if kind == BIGINT:
        found = int(value)
    elif kind == TIMESTAMP:
        found = to_millis(value)
    elif pattern is None:
        found = to_millis(to_timestamp(value))
    else:
        moment, zone = parse_with(value, pattern)
        offset = zone.utcoffset(moment) if zone is not None else None
        found = to_millis(moment if offset is None else moment - offset)
    if found < 0:
        raise NoTime(f"the column of ROWTIME is {value}: before 1970")
    return found


@dataclass(frozen=True)
class RowTime:
    """The extractor of a source, and the function of a node before a sink: `(key, value)` gives the time.
    `index` is set where the column is in the key."""

    name: str
    kind: SqlType
    pattern: str | None = None
    index: int | None = None

    def __call__(self, first: Any, second: Any) -> int:
        """As an extractor: (record, previous time). A tombstone keeps its own time."""
        if first.value is None:
            return int(first.timestamp)
        return self.of(first.key, first.value)

    def of(self, key: Any, value: Any) -> int:
        if self.index is None:
            return millis_of(value.get(self.name), self.kind, self.pattern)
        if isinstance(key, Windowed):
            key = key.key
        return millis_of(None if key is None else key[self.index], self.kind, self.pattern)


@dataclass(frozen=True)
class StampRow:
    """The function of a node before a sink: its time is that of a column of the row that is written."""

    time: RowTime

    def __call__(self, key: Any, value: Any) -> int:
        return self.time.of(key, value)
