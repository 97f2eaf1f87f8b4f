"""Queries of the modes, and the position that rows reach.

In: a mode, its columns, a position. Out: a statement with values; the position behind a batch. Pure.

A position of mode `timestamp` is the last time whose rows are all sent, so rows with equal times are not lost
when a task ends between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Position:
    """How far a table was read, as Confluent's source stores it."""

    time: datetime | None = None
    number: int | None = None

    @staticmethod
    def of(offset: dict[str, Any] | None) -> Position:
        if not offset:
            return Position()
        found = None
        if offset.get("timestamp") is not None:
            seconds = int(offset["timestamp"]) // 1000
            nanos = int(offset.get("timestamp_nanos", int(offset["timestamp"]) % 1000 * 1_000_000))
            found = EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
        number = offset.get("incrementing")
        return Position(found, None if number is None else int(number))

    @property
    def offset(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.number is not None:
            found["incrementing"] = self.number
        if self.time is not None:
            micros = (self.time - EPOCH) // timedelta(microseconds=1)
            found["timestamp"] = micros // 1000
            found["timestamp_nanos"] = micros % 1_000_000 * 1000
        return found


@dataclass(frozen=True, slots=True)
class Criteria:
    """The columns that decide what is new; names are quoted. Both empty: mode bulk."""

    times: tuple[str, ...] = ()
    number: str = ""

    @property
    def time(self) -> str:
        return self.times[0] if len(self.times) == 1 else f"COALESCE({', '.join(self.times)})"

    def where(
        self, position: Position, until: datetime | None, bind: Callable[[datetime], Any]
    ) -> tuple[str, list[Any]]:
        """The condition and the order, with values. `bind` gives a time as the column compares it."""
        parts: list[str] = []
        values: list[Any] = []
        if self.times:
            assert until is not None
            parts.append(f"{self.time} < %s")
            values.append(bind(until))
            if position.time is not None and self.number and position.number is not None:
                parts.append(f"(({self.time} = %s AND {self.number} > %s) OR {self.time} > %s)")
                values += [bind(position.time), position.number, bind(position.time)]
            elif position.time is not None:
                parts.append(f"{self.time} > %s")
                values.append(bind(position.time))
        elif self.number and position.number is not None:
            parts.append(f"{self.number} > %s")
            values.append(position.number)
        order = ", ".join([*([self.time] if self.times else []), *([self.number] if self.number else [])])
        condition = f" WHERE {' AND '.join(parts)}" if parts else ""
        return condition + (f" ORDER BY {order} ASC" if order else ""), values


def reached(
    start: Position, times: Sequence[datetime], numbers: Sequence[int], following: datetime | None
) -> Position:
    """The position behind rows with these times and numbers. `following`: the time of the next row, None if
    there is none. Without numbers, only times that are complete count."""
    if numbers:
        return Position(times[-1] if times else None, numbers[-1])
    if not times:
        return start
    if following is None or following > times[-1]:
        return Position(times[-1])
    complete = [each for each in times if each < times[-1]]
    return Position(max(complete)) if complete else start
