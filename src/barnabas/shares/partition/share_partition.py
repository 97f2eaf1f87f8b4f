"""A share partition: the records of one partition that are in flight in one share group.

In: stored state, acquisitions, acknowledgements, lock timeouts, a log start offset that moves. Out: which
offset to fetch next, and the changes to store. A change that a member asked for is *pending* until it is
stored, or rolled back; the start offset (SPSO) passes records whose end is stored. As Kafka, the end offset
(SPEO) is that of the last record in flight, or the next to fetch if there is none.
Does not know: logs, requests, the clock, how state is stored. See `acquiring` and `acknowledging` for the
rules of requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.shares.partition.runs import (
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    NO_DEADLINE,
    NO_MEMBER,
    TERMINAL,
    UNREAD,
    RecordState,
    Run,
    Runs,
)

KNOWN_STATES = frozenset(RecordState)


class StateRange(NamedTuple):
    """A range of offsets with its state, as it is stored."""

    first: int
    last: int
    state: int
    deliveries: int


class Change:
    """A change of states that a member asked for: pending until `SharePartition.complete`."""

    __slots__ = ("deliveries_max", "member", "ranges")

    def __init__(self, member: str, deliveries_max: int) -> None:
        self.member = member
        self.deliveries_max = deliveries_max
        self.ranges: list[StateRange] = []

    def add(self, run: Run) -> None:
        add_range(self.ranges, run)


def add_range(ranges: list[StateRange], run: Run) -> None:
    """Append the state of a run, joined with the last range if both are equal."""
    if ranges:
        last = ranges[-1]
        if last.last + 1 == run.first and last.state == run.state and last.deliveries == run.deliveries:
            ranges[-1] = last._replace(last=run.last)
            return
    ranges.append(StateRange(run.first, run.last, run.state, run.deliveries))


class SharePartition:
    __slots__ = ("_available_from", "complete_count", "end_offset", "runs", "start_offset", "state_epoch")

    def __init__(self, start_offset: int, state_epoch: int = 0) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.state_epoch = state_epoch
        self.runs = Runs()
        self.complete_count = 0  # records in flight that are done, stored or not: the lag leaves them out
        self._available_from = start_offset  # no record below it is available

    @classmethod
    def load(cls, start_offset: int, state_epoch: int, stored: Iterable[StateRange]) -> SharePartition:
        """The share partition with its stored state. Records between stored ranges were fetched by members
        that did not acknowledge them: they are delivered again. INVALID_REQUEST if ranges contradict."""
        found = cls(start_offset, state_epoch)
        next_offset = start_offset
        for first, last, state, deliveries in stored:
            if first < next_offset or last < first or state not in KNOWN_STATES:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"stored state {first} to {last} (state {state}) is invalid"
                )
            if first > next_offset:
                found.runs.append(Run(next_offset, first - 1, AVAILABLE, 0, batch=UNREAD))
            found.runs.append(Run(first, last, state if state != ACQUIRED else AVAILABLE, deliveries))
            if state >= TERMINAL:
                found.complete_count += last - first + 1
            next_offset = last + 1
            found.end_offset = last
        found.advance()
        return found

    # -- offsets ---------------------------------------------------------------------------------

    @property
    def is_fresh(self) -> bool:
        """Whether no record at or after the start offset is in flight."""
        return not len(self.runs) or self.start_offset > self.runs[-1].last

    @property
    def in_flight(self) -> int:
        """How many offsets lie between the start and the end offset. Each counts as a record lock."""
        return self.end_offset - self.start_offset + 1 if len(self.runs) else 0

    @property
    def next_fetch_offset(self) -> int:
        """The first record that is available, or the first that was never fetched."""
        if self.is_fresh:
            return self.end_offset
        runs = self.runs
        for index in range(runs.index_at(self._available_from), len(runs)):
            if runs[index].is_available:
                self._available_from = runs[index].first
                return self._available_from
        self._available_from = self.end_offset + 1
        return self._available_from

    def can_acquire(self, record_locks_max: int) -> bool:
        """Whether records are available again, or more may be in flight."""
        return self.in_flight < record_locks_max or self.next_fetch_offset != self.end_offset + 1

    def made_available(self, first: int) -> None:
        """Note that records from this offset on may be available."""
        self._available_from = min(self._available_from, first)

    def count_in_flight(self, first: int, last: int) -> int:
        """The number of offsets in the range that the start offset has not passed."""
        return max(last - max(first, self.start_offset) + 1, 0)

    def advance(self) -> bool:
        """Move the start offset behind the records that are done. Returns whether it moved."""
        runs = self.runs
        done = 0
        for run in runs:
            if not run.is_done:
                break
            self.complete_count -= self.count_in_flight(run.first, run.last)
            done += 1
        if not done:
            return False
        if done == len(runs):
            self.start_offset = self.end_offset = max(runs[-1].last + 1, self.start_offset)
            self.complete_count = 0
            runs.clear()
        else:
            runs.remove_first(done)
            self.start_offset = max(self.start_offset, runs[0].first)
        return True

    # -- changes ---------------------------------------------------------------------------------

    def begin(self, change: Change, run: Run, state: int) -> None:
        """Give acquired records another state, pending. Released records that were delivered too often are
        archived."""
        if state == AVAILABLE and run.deliveries >= change.deliveries_max:
            state = ARCHIVED
        run.state = state
        run.member = NO_MEMBER
        run.pending = change
        change.add(run)
        if state >= TERMINAL:
            self.complete_count += self.count_in_flight(run.first, run.last)

    def complete(self, change: Change, is_stored: bool, now_ms: int) -> bool:
        """End a pending change: keep it, or roll it back. Rolled back records are acquired again, or
        available if their lock has run out. Returns whether records may be acquired that could not before."""
        has_more = False
        ranges = change.ranges
        for first, last, _, _ in ranges:
            for run in self.runs.overlapping(first, last):
                if run.pending is not change:
                    continue  # archived meanwhile
                run.pending = None
                if is_stored:
                    run.deadline_ms = NO_DEADLINE
                else:
                    self._roll_back(run, change, now_ms)
                if run.state == AVAILABLE:
                    self.made_available(run.first)
                    has_more = True
        if ranges:
            self.runs.merge(ranges[0].first, ranges[-1].last)
        return self.advance() or has_more

    def _roll_back(self, run: Run, change: Change, now_ms: int) -> None:
        was_terminal = run.state >= TERMINAL
        if run.deadline_ms > now_ms:
            run.state, run.member = ACQUIRED, change.member
        else:
            run.state = ARCHIVED if run.deliveries >= change.deliveries_max else AVAILABLE
            run.deadline_ms = NO_DEADLINE
        is_terminal = run.state >= TERMINAL
        self.complete_count += self.count_in_flight(run.first, run.last) * (is_terminal - was_terminal)

    def release(self, member: str, deliveries_max: int) -> Change:
        """Release all records that a member has acquired: it has closed its session."""
        change = Change(member, deliveries_max)
        runs = self.runs
        runs.split(self.start_offset)
        for run in runs:
            if run.state == ACQUIRED and run.member == member:
                self.begin(change, run, ARCHIVED if run.last < self.start_offset else AVAILABLE)
        return change

    def expire(self, now_ms: int, deliveries_max: int) -> list[StateRange]:
        """Release records whose lock has run out. That is done whether or not it can be stored. Returns the
        new states."""
        ranges: list[StateRange] = []
        runs = self.runs
        runs.split(self.start_offset)
        for run in runs:
            if run.state != ACQUIRED or run.deadline_ms > now_ms:
                continue
            is_over = run.last < self.start_offset or run.deliveries >= deliveries_max
            run.state = ARCHIVED if is_over else AVAILABLE
            run.member, run.deadline_ms = NO_MEMBER, NO_DEADLINE
            if is_over:
                self.complete_count += self.count_in_flight(run.first, run.last)
            else:
                self.made_available(run.first)
            add_range(ranges, run)
        if ranges:
            runs.merge(ranges[0].first, ranges[-1].last)
        return ranges

    @property
    def next_deadline_ms(self) -> int:
        """When the first acquisition lock runs out; 0 if there is none."""
        return min((run.deadline_ms for run in self.runs if run.state == ACQUIRED), default=NO_DEADLINE)

    # -- records that are gone -------------------------------------------------------------------

    def archive(self, first: int, last: int, state: int) -> bool:
        """Archive the records of a range that are in this state: they are not in the log any more, or belong
        to aborted transactions. Returns whether there were any."""
        is_any = False
        for run in self.runs.overlapping(first, last):
            if run.state == state:
                is_any = True
                break
        if not is_any:
            return False
        for run in self.runs.cut(first, last):
            if run.state == state:
                run.state, run.member, run.deadline_ms = ARCHIVED, NO_MEMBER, NO_DEADLINE
                run.pending = None
                if run.batch is UNREAD:
                    run.batch = None
                self.complete_count += self.count_in_flight(run.first, run.last)
        self.runs.merge(first, last)
        return True

    def move_log_start(self, log_start_offset: int) -> None:
        """Follow the log's start: earlier records are not delivered again. Acquired ones stay until their
        locks run out, since a member may still work on them."""
        if log_start_offset <= self.start_offset:
            return
        self.archive(self.start_offset, log_start_offset - 1, AVAILABLE)
        for run in self.runs.overlapping(self.start_offset, log_start_offset - 1):
            if run.state >= TERMINAL:
                last = min(run.last, log_start_offset - 1)
                self.complete_count -= self.count_in_flight(run.first, last)
        self.start_offset = log_start_offset
        self.end_offset = max(self.end_offset, log_start_offset)
        self.made_available(log_start_offset)
        self.advance()
