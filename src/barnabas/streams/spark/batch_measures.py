"""Measures of one batch of a task, taken where it runs and sent to the driver with its result.

In: phases as they end, timestamps of records, accesses to stores. Out: values that travel. All of it costs a
few calls for a batch, whatever its records are; accesses to stores and records by node are measured only with
`metrics.recording.level=DEBUG`. Does not know: names of metrics, Spark.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from barnabas.streams.columns.task import Part

US_A_MS = 1000.0


class Ages(NamedTuple):
    """Milliseconds from the timestamps of a batch's records to a moment."""

    total: float
    records: int
    smallest: float
    largest: float

    def after(self, seconds: float) -> Ages:
        """The same a while later."""
        ms = 1000 * seconds
        return Ages(self.total + ms * self.records, self.records, self.smallest + ms, self.largest + ms)


class Accesses(NamedTuple):
    """Calls of one kind to a store: pages, time, and the slowest page."""

    pages: int = 0
    total_ns: int = 0
    largest_ns: float = 0.0

    def plus(self, pages: int, spent_ns: int) -> Accesses:
        slowest = max(self.largest_ns, spent_ns / pages)
        return Accesses(self.pages + pages, self.total_ns + spent_ns, slowest)


@dataclass(frozen=True, slots=True)
class StoreMeasures:
    """One store: accesses by kind (`get`, `put`, `delete`, `range`), and pages found in memory."""

    accesses: Mapping[str, Accesses] = field(default_factory=dict)
    hits: int = 0


@dataclass(frozen=True, slots=True)
class BatchMeasures:
    """`phases`: seconds of `poll` (reading records), `process`, `flush` (the state), `send` (waiting for the
    brokers that write results), `commit`, `restore`. `ages`: of records when they were read."""

    phases: Mapping[str, float] = field(default_factory=dict)
    ages: Ages | None = None
    restored: int = 0
    nodes: Mapping[str, int] = field(default_factory=dict)
    stores: Mapping[str, StoreMeasures] = field(default_factory=dict)


NOTHING_MEASURED = BatchMeasures()


class Stopwatch:
    """The time of phases, each from the end of the one before it."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._since = time.perf_counter()

    def lap(self, name: str) -> float:
        now = time.perf_counter()
        spent, self._since = now - self._since, now
        self.phases[name] = self.phases.get(name, 0.0) + spent
        return spent


def ages_of(parts: Iterable[Part], now_s: float) -> Ages | None:
    """The ages of records at a moment; None without records."""
    total, count, first, last = 0.0, 0, float("inf"), float("-inf")
    for part in parts:
        rows = part.records.num_rows
        if rows:
            times = part.records.column("timestamp").cast(pa.int64())
            bounds = pc.min_max(times)
            first = min(first, bounds["min"].as_py() / US_A_MS)
            last = max(last, bounds["max"].as_py() / US_A_MS)
            total += pc.mean(times).as_py() / US_A_MS * rows
            count += rows
    if not count:
        return None
    now_ms = 1000 * now_s
    return Ages(now_ms * count - total, count, now_ms - last, now_ms - first)
