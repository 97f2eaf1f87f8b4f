"""Acquiring: which of the fetched records a member gets, with a lock.

In: the batches that were read from the log, and what the member asked for. Out: the ranges that it has
acquired, with their delivery counts. Records that are available again come first, batch by batch, then new
ones. A whole batch is acquired even if it has more records than the member asked for, unless it insists on
the limit (KIP-1206). Records that were delivered often are delivered with few others, and alone for the last
time (KIP-932). Does not know: the log, bytes, transactions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.shares.partition.limits import ShareLimits
from barnabas.shares.partition.runs import ACQUIRED, AVAILABLE, UNREAD, Batch, Run
from barnabas.shares.partition.share_partition import SharePartition


class Span(NamedTuple):
    """The offsets of one batch in the log."""

    first: int
    last: int


class Acquired(NamedTuple):
    first: int
    last: int
    deliveries: int


class Wish(NamedTuple):
    """The request of a member."""

    member: str
    fetch_offset: int  # that the log was read from
    records_max: int
    batch_size: int  # records that should be acquired as one range
    has_strict_limit: bool  # never more than `records_max`
    deadline_ms: int  # of the locks


def acquire(state: SharePartition, wish: Wish, spans: Sequence[Span], limits: ShareLimits) -> list[Acquired]:
    """Acquire records of the batches in `spans`, which were read from the log in this order."""
    last = spans[-1].last
    if wish.records_max <= 0 or last < state.start_offset:
        return []
    room = min(wish.records_max, limits.record_locks_max - state.in_flight)
    if room <= 0:
        if wish.fetch_offset > state.end_offset:
            return []
        # No more records may be in flight, but released ones are delivered again.
        room = min(wish.records_max, state.end_offset - wish.fetch_offset + 1)
        last = min(last, state.end_offset)
    if wish.fetch_offset < spans[0].first and state.archive(wish.fetch_offset, spans[0].first - 1, AVAILABLE):
        state.advance()  # compaction has removed these records
    return Acquisition(state, wish, spans, limits, last, room).run()


class Acquisition:
    """One acquisition under way."""

    __slots__ = ("_acquired", "_last", "_limits", "_room", "_spans", "_state", "_wish")

    def __init__(
        self,
        state: SharePartition,
        wish: Wish,
        spans: Sequence[Span],
        limits: ShareLimits,
        last: int,
        room: int,
    ) -> None:
        self._state = state
        self._wish = wish
        self._spans = spans
        self._limits = limits
        self._last = last  # offset to acquire
        self._room = room  # records that may still be acquired
        self._acquired: list[Acquired] = []

    def run(self) -> list[Acquired]:
        state, last = self._state, self._last
        runs = state.runs
        first_read = self._spans[0].first
        next_offset = max(first_read, state.start_offset)
        if not len(runs):
            next_offset = max(first_read, state.end_offset)
        index = runs.index_at(first_read)
        while index < len(runs) and runs[index].first <= last and self._room > 0:
            run = runs[index]
            next_offset = run.batch_last + 1
            if run.batch is UNREAD:
                self._acquire_unread(max(run.first, first_read), min(run.last, last))
            else:
                self._acquire_again(index, runs.batch_end(index))
            index = runs.index_at(next_offset)
        if self._room > 0 and index == len(runs) and next_offset <= last:
            for run in self._new_runs(next_offset, last):
                runs.append(run)
            if runs[0].first == next_offset:
                state.start_offset = next_offset
            state.end_offset = max(state.end_offset, runs[-1].last)
        return self._acquired

    # -- records that were in flight before ----------------------------------------------------------

    def _acquire_again(self, index: int, end: int) -> None:
        """Acquire available records of a batch in flight."""
        runs, last = self._state.runs, self._last
        first_read = self._spans[0].first
        batch_first, batch_last = runs[index].batch_first, runs[index].batch_last
        counts = [
            run.deliveries
            for run in (runs[each] for each in range(index, end))
            if run.is_available and run.last >= first_read and run.first <= last
        ]
        if not counts:
            return
        is_throttled = max(counts) >= self._limits.throttled_deliveries
        if is_throttled and self._acquired:
            self._room = 0  # the next fetch gets these records, without others
            return
        before = len(self._acquired)
        taken = self._acquire(
            max(batch_first, first_read), min(batch_last, last), batch_last - batch_first + 1
        )
        for got in self._acquired[before:]:
            runs.merge(got.first, got.last)
        self._room = 0 if is_throttled and taken else self._room - taken

    def _acquire(self, first: int, last: int, batch_records: int) -> int:
        """Acquire available records of a range in one batch. Returns how many."""
        limits, wish = self._limits, self._wish
        runs = self._state.runs
        before = len(self._acquired)
        taken, together_max = 0, -1
        index = runs.index_at(first)
        while index < len(runs) and runs[index].first <= last:
            run = runs[index]
            index += 1
            if not run.is_available:
                continue
            start, stop = max(run.first, first), min(run.last, last)
            is_last_time = limits.isolates_last and run.deliveries == limits.deliveries_max - 1
            if is_last_time:
                if taken:
                    break
                stop = start
            if run.deliveries >= limits.throttled_deliveries and together_max < 0:
                together_max = max(1, batch_records >> (run.deliveries - limits.throttled_deliveries + 1))
            if together_max > taken:
                stop = min(stop, start + together_max - taken - 1)
            if wish.has_strict_limit:
                stop = min(stop, start + self._room - taken - 1)
            (part,) = runs.cut(start, stop)
            part.state, part.member, part.deadline_ms = ACQUIRED, wish.member, wish.deadline_ms
            part.deliveries += 1
            taken += stop - start + 1
            self._note(start, stop, part.deliveries, before)
            if is_last_time or taken == together_max or (wish.has_strict_limit and taken == self._room):
                break
            index = runs.index_at(stop + 1)
        return taken

    def _note(self, first: int, last: int, deliveries: int, batch_start: int) -> None:
        """Add acquired records, joined with the last range of the same batch if they continue it."""
        acquired = self._acquired
        if (
            len(acquired) > batch_start
            and acquired[-1].last + 1 == first
            and acquired[-1].deliveries == deliveries
        ):
            acquired[-1] = acquired[-1]._replace(last=last)
        else:
            acquired.append(Acquired(first, last, deliveries))

    # -- records that are read for the first time ------------------------------------------------------

    def _acquire_unread(self, first: int, last: int) -> None:
        """Acquire records of a run whose batches were not known until now."""
        runs = self._state.runs
        made = self._new_runs(first, last)
        stop = made[-1].last
        (unread,) = runs.cut(first, min(stop, last))
        runs.replace(runs.index_at(unread.first), made)

    def _new_runs(self, first: int, last: int) -> list[Run]:
        """Make runs of records that were never delivered, cut at the ends of batches in the log."""
        wish, room = self._wish, self._room
        if last - first + 1 > room:
            last = min(last, self._batch_end(first + room - 1))
        if wish.has_strict_limit:
            return self._new_run_with_limit(first, last)
        starts = [first]
        if last - first + 1 > wish.batch_size:
            for span in self._spans:
                if span.first > last:
                    break
                if span.first - starts[-1] >= max(wish.batch_size, 1):
                    starts.append(span.first)
        made = []
        for start, following in zip(starts, [*starts[1:], last + 1], strict=True):
            made.append(Run(start, following - 1, ACQUIRED, 1, wish.member, wish.deadline_ms))
            self._acquired.append(Acquired(start, following - 1, 1))
        self._room -= last - first + 1
        return made

    def _new_run_with_limit(self, first: int, last: int) -> list[Run]:
        """The same for a member that insists on its limit: the rest of the batch is available to others."""
        wish = self._wish
        stop = min(last, first + self._room - 1)
        self._room -= stop - first + 1
        self._acquired.append(Acquired(first, stop, 1))
        made = [Run(first, stop, ACQUIRED, 1, wish.member, wish.deadline_ms)]
        if stop < last:
            made[0].batch = Batch(first, last)
            made.append(Run(stop + 1, last, AVAILABLE, 0, batch=made[0].batch))
            self._state.made_available(stop + 1)
        return made

    def _batch_end(self, offset: int) -> int:
        """The last offset of the batch in the log that holds the offset; the offset itself if none does."""
        for span in self._spans:
            if span.first > offset:
                break
            if offset <= span.last:
                return span.last
        return offset


def last_wanted(state: SharePartition, fetch_offset: int, records_max: int, record_locks_max: int) -> int:
    """The last offset that an acquisition can need from the log, batches not counted."""
    runs = state.runs
    left = records_max
    for index in range(runs.index_at(fetch_offset), len(runs)):
        run = runs[index]
        if run.is_available:
            left -= run.last - max(run.first, fetch_offset) + 1
            if left <= 0:
                return run.last
    room = max(record_locks_max - state.in_flight, 0)
    first_new = state.end_offset if state.is_fresh else state.end_offset + 1
    return max(first_new, fetch_offset) + min(left, room) - 1
