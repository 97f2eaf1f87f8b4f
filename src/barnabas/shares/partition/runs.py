"""Runs: the records in flight of one share partition, as intervals of offsets in the same state.

In: ranges of offsets. Out: the runs that lie in them, cut at the ends of the range. A run costs the same for
one record and for a thousand. The runs are in a list, ordered by offset; a search is logarithmic, and an
insertion moves pointers. Runs that were acquired together form a *batch*, which keeps its bounds when its
records get different states, as in Kafka: limits and errors depend on them.
Does not know: what changes the state of a record, and when.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from enum import IntEnum
from typing import Any


class RecordState(IntEnum):
    """Kafka's states of a record in flight, as they are stored."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = RecordState
TERMINAL = ACKNOWLEDGED  # records in this state or a later one are never delivered again
NO_MEMBER = ""
NO_DEADLINE = 0


class Batch:
    """The bounds of records that were acquired together, after they got different states."""

    __slots__ = ("first", "last")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last


UNREAD = Batch(0, -1)
"""The batch of a run whose records were not read since the state was loaded: its batches are not known."""


class Run:
    __slots__ = ("batch", "deadline_ms", "deliveries", "first", "last", "member", "pending", "state")

    def __init__(
        self,
        first: int,
        last: int,
        state: int,
        deliveries: int,
        member: str = NO_MEMBER,
        deadline_ms: int = NO_DEADLINE,
        batch: Batch | None = None,
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.deliveries = deliveries
        self.member = member  # that has acquired the records
        self.deadline_ms = deadline_ms  # of the acquisition lock
        self.batch = batch  # None: this run is a whole batch
        self.pending: Any = None  # the change that led to this state, until it is stored

    def __repr__(self) -> str:
        state = RecordState(self.state).name.lower()
        pending = " pending" if self.pending is not None else ""
        return f"{self.first}-{self.last} {state}{pending} x{self.deliveries} {self.member}".rstrip()

    @property
    def is_available(self) -> bool:
        return self.state == AVAILABLE and self.pending is None

    @property
    def is_done(self) -> bool:
        """Whether the records will never be delivered again, and that is stored."""
        return self.state >= TERMINAL and self.pending is None

    @property
    def batch_first(self) -> int:
        return self.first if self.batch is None or self.batch is UNREAD else self.batch.first

    @property
    def batch_last(self) -> int:
        return self.last if self.batch is None or self.batch is UNREAD else self.batch.last

    def equals(self, other: Run) -> bool:
        """Whether both are parts of one batch with nothing that tells their records apart."""
        return (
            self.batch is other.batch
            and self.batch is not None
            and self.state == other.state
            and self.pending is other.pending
            and (self.state >= TERMINAL or self.deliveries == other.deliveries)
            and self.member == other.member
            and self.deadline_ms == other.deadline_ms
        )


class Runs:
    __slots__ = ("_firsts", "_runs")

    def __init__(self) -> None:
        self._firsts: list[int] = []  # of the runs, so that `bisect` compares numbers
        self._runs: list[Run] = []

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def __getitem__(self, index: int) -> Run:
        return self._runs[index]

    def index_at(self, offset: int) -> int:
        """The index of the first run that ends at or after the offset."""
        index = bisect_right(self._firsts, offset)
        return index - 1 if index and self._runs[index - 1].last >= offset else index

    def floor(self, offset: int) -> int:
        """The index of the last run that begins at or before the offset; -1 if there is none."""
        return bisect_right(self._firsts, offset) - 1

    def append(self, run: Run) -> None:
        """Add a run behind all others."""
        self._firsts.append(run.first)
        self._runs.append(run)

    def replace(self, index: int, runs: list[Run]) -> None:
        """Put other runs into the place of one."""
        self._firsts[index : index + 1] = [run.first for run in runs]
        self._runs[index : index + 1] = runs

    def remove_first(self, count: int) -> None:
        del self._firsts[:count]
        del self._runs[:count]

    def clear(self) -> None:
        self._firsts.clear()
        self._runs.clear()

    def split(self, offset: int) -> None:
        """Make a run begin at the offset, if there is a run on both sides of it."""
        index = bisect_right(self._firsts, offset) - 1
        if index < 0:
            return
        run = self._runs[index]
        if run.first == offset or run.last < offset:
            return
        if run.batch is None:
            run.batch = Batch(run.first, run.last)
        rest = Run(offset, run.last, run.state, run.deliveries, run.member, run.deadline_ms, run.batch)
        rest.pending = run.pending
        run.last = offset - 1
        self._firsts.insert(index + 1, offset)
        self._runs.insert(index + 1, rest)

    def overlapping(self, first: int, last: int) -> list[Run]:
        """The runs with records in the range."""
        start = self.index_at(first)
        return self._runs[start : bisect_right(self._firsts, last, start)]

    def cut(self, first: int, last: int) -> list[Run]:
        """The runs with records in the range, cut so that none reaches beyond it."""
        start = self.index_at(first)
        if start < len(self._runs) and self._runs[start].first < first:
            self.split(first)
            start += 1
        stop = bisect_right(self._firsts, last, start)
        if stop > start and self._runs[stop - 1].last > last:
            self.split(last + 1)
        return self._runs[start:stop]

    def merge(self, first: int, last: int) -> None:
        """Join runs in and beside the range that have become equal."""
        runs = self._runs
        stop = min(self.index_at(last) + 2, len(runs))
        start = max(self.index_at(first) - 1, 0)
        if stop - start < 2:
            return
        merged = [runs[start]]
        for run in runs[start + 1 : stop]:
            before = merged[-1]
            if run.batch is not None and before.last + 1 == run.first and before.equals(run):
                before.last = run.last
            else:
                merged.append(run)
        if len(merged) < stop - start:
            runs[start:stop] = merged
            self._firsts[start:stop] = [run.first for run in merged]

    def batch_end(self, index: int) -> int:
        """The index behind the last run of the batch that the run at `index` belongs to."""
        batch = self._runs[index].batch
        end = index + 1
        if batch is not None and batch is not UNREAD:
            while end < len(self._runs) and self._runs[end].batch is batch:
                end += 1
        return end
