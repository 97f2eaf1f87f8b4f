"""A share partition with one object for each record: slow and simple, as Kafka's classes describe it.

The tests compare it with the intervals of `barnabas.shares.partition`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from barnabas.shares.partition.limits import ShareLimits

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = 0, 1, 2, 4
TYPES = {0: ARCHIVED, 1: ACKNOWLEDGED, 2: AVAILABLE, 3: ARCHIVED}
RENEW = 4


@dataclass(eq=False)
class Record:
    offset: int
    batch: Batch
    state: int = ACQUIRED
    deliveries: int = 1
    member: str = ""
    deadline: int = 0
    pending: object = None

    @property
    def is_available(self) -> bool:
        return self.state == AVAILABLE and self.pending is None

    @property
    def is_terminal(self) -> bool:
        return self.state in (ACKNOWLEDGED, ARCHIVED)


@dataclass(eq=False)
class Batch:
    first: int
    last: int
    is_unread: bool = False


class Refused(Exception):
    pass


@dataclass
class Model:
    start: int
    end: int = -1
    records: dict[int, Record] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.end = self.start

    # -- questions ---------------------------------------------------------------------------------

    def in_order(self) -> Iterator[Record]:
        for offset in sorted(self.records):
            yield self.records[offset]

    @property
    def in_flight(self) -> int:
        return self.end - self.start + 1 if self.records else 0

    @property
    def next_fetch_offset(self) -> int:
        if not self.records or self.start > max(self.records):
            return self.end
        for record in self.in_order():
            if record.is_available:
                return record.offset
        return self.end + 1

    @property
    def complete_count(self) -> int:
        return sum(record.is_terminal for record in self.records.values() if record.offset >= self.start)

    def batches(self) -> list[list[Record]]:
        return [list(group) for _, group in groupby(self.in_order(), key=lambda record: id(record.batch))]

    # -- changes -----------------------------------------------------------------------------------

    def advance(self) -> None:
        gone = []
        for record in self.in_order():
            if not record.is_terminal or record.pending is not None:
                break
            gone.append(record.offset)
        if gone and len(gone) == len(self.records):
            self.start = self.end = max(gone[-1] + 1, self.start)
        for offset in gone:
            del self.records[offset]
        if gone and self.records:
            self.start = max(self.start, min(self.records))

    def load(self, stored: Sequence[tuple[int, int, int, int]]) -> None:
        offset = self.start
        for first, last, state, deliveries in stored:
            if offset < first:
                unread = Batch(offset, first - 1, is_unread=True)
                for each in range(offset, first):
                    self.records[each] = Record(each, unread, AVAILABLE, 0)
            batch = Batch(first, last)
            for each in range(first, last + 1):
                self.records[each] = Record(each, batch, state, deliveries)
            offset = last + 1
            self.end = last
        self.advance()

    def archive(self, first: int, last: int, state: int) -> bool:
        found = [
            record
            for record in self.records.values()
            if first <= record.offset <= last and record.state == state
        ]
        for record in found:
            record.state, record.member, record.pending = ARCHIVED, "", None
            if record.batch.is_unread:
                record.batch = Batch(record.offset, record.offset)
        return bool(found)

    def acquire(
        self,
        member: str,
        fetch_offset: int,
        records_max: int,
        batch_size: int,
        strict: bool,
        deadline: int,
        spans: Sequence[tuple[int, int]],
        limits: ShareLimits,
    ) -> list[tuple[int, int, int]]:
        first_read, last = spans[0][0], spans[-1][1]
        if records_max <= 0 or last < self.start:
            return []
        room = min(records_max, limits.record_locks_max - self.in_flight)
        if room <= 0:
            if fetch_offset > self.end:
                return []
            room = min(records_max, self.end - fetch_offset + 1)
            last = min(last, self.end)
        if fetch_offset < first_read and self.archive(fetch_offset, first_read - 1, AVAILABLE):
            self.advance()
        acquired: list[tuple[int, int, int]] = []
        next_offset = max(first_read, self.start if self.records else self.end)
        reaches_end = True
        for records in self.batches():
            if records[-1].offset < first_read:
                continue
            if records[0].offset > last or room <= 0:
                reaches_end = False
                break
            next_offset = records[-1].offset + 1
            inside = [record for record in records if first_read <= record.offset <= last]
            if records[0].batch.is_unread:
                got = self._acquire_new(
                    inside[0].offset, inside[-1].offset, member, room, batch_size, strict, deadline, spans
                )
                room -= sum(each[1] - each[0] + 1 for each in got)
                acquired += got
                continue
            ready = [record for record in inside if record.is_available]
            if not ready:
                continue
            is_throttled = max(record.deliveries for record in ready) >= limits.throttled_deliveries
            if is_throttled and acquired:
                room = 0
                break
            bounds = records[0].batch
            taken = self._take(ready, member, room, strict, deadline, bounds.last - bounds.first + 1, limits)
            acquired += joined(taken)
            room = 0 if is_throttled and taken else room - len(taken)
        if room > 0 and reaches_end and next_offset <= last:
            is_first = not self.records or next_offset < min(self.records)
            acquired += self._acquire_new(
                next_offset, last, member, room, batch_size, strict, deadline, spans
            )
            if is_first:
                self.start = next_offset
            self.end = max(self.end, max(self.records))
        return acquired

    def _take(
        self,
        ready: list[Record],
        member: str,
        room: int,
        strict: bool,
        deadline: int,
        batch_records: int,
        limits: ShareLimits,
    ) -> list[Record]:
        taken: list[Record] = []
        cap = -1
        for record in ready:
            is_last_time = limits.isolates_last and record.deliveries == limits.deliveries_max - 1
            if is_last_time and taken:
                break
            if record.deliveries >= limits.throttled_deliveries and cap < 0:
                cap = max(1, batch_records >> (record.deliveries - limits.throttled_deliveries + 1))
            record.state, record.member, record.deadline = ACQUIRED, member, deadline
            record.deliveries += 1
            taken.append(record)
            if is_last_time or (strict and len(taken) == room) or len(taken) == cap:
                break
        return taken

    def _acquire_new(
        self,
        first: int,
        last: int,
        member: str,
        room: int,
        batch_size: int,
        strict: bool,
        deadline: int,
        spans: Sequence[tuple[int, int]],
    ) -> list[tuple[int, int, int]]:
        if last - first + 1 > room:
            target = first + room - 1
            ends = [span[1] for span in spans if span[0] <= target <= span[1]]
            last = min(last, ends[0] if ends else target)
        starts = [first]
        if not strict and last - first + 1 > batch_size:
            for span in spans:
                if span[0] <= last and span[0] - starts[-1] >= max(batch_size, 1):
                    starts.append(span[0])
        result = []
        for start, following in zip(starts, [*starts[1:], last + 1], strict=True):
            batch = Batch(start, following - 1)
            for offset in range(start, following):
                self.records[offset] = Record(offset, batch, ACQUIRED, 1, member, deadline)
                if strict and offset >= first + room:
                    self.records[offset] = Record(offset, batch, AVAILABLE, 0)
            result.append((start, following - 1, 1))
        if strict:
            result = [(first, min(last, first + room - 1), 1)]
        return result

    def plan(
        self,
        member: str,
        acknowledgements: Sequence[tuple[int, int, Sequence[int]]],
        limits: ShareLimits,
    ) -> dict[int, int]:
        """The types of acknowledgement by offset. Raises Refused."""
        planned: dict[int, int] = {}
        for first, last, types in acknowledgements:
            if last < self.start:
                continue
            known = [record for record in self.records.values() if not record.batch.is_unread]
            before = [record for record in known if record.offset <= first]
            if not before and not (
                first < self.start <= last and any(record.offset <= self.start for record in known)
            ):
                raise Refused("not found")
            until = max((record.batch.last for record in known if record.offset <= last), default=-1)
            if until < first or until < last:
                raise Refused("too large")
            for offset in range(max(first, self.start), last + 1):
                record = self.records.get(offset)
                if record is None or record.batch.is_unread:
                    continue
                if offset in planned or record.state != ACQUIRED or record.member != member:
                    raise Refused("not acquired")
                kind = types[0] if len(types) == 1 else types[offset - first]
                if kind == RENEW and not limits.may_renew:
                    raise Refused("no renewal")
                planned[offset] = kind
        return planned

    def acknowledge(self, planned: dict[int, int], limits: ShareLimits, now: int) -> list[Record]:
        changed: list[Record] = []
        for offset, kind in planned.items():
            record = self.records[offset]
            if kind == RENEW:
                record.deadline = now + limits.lock_duration_ms
            else:
                self._begin(record, TYPES[kind], limits)
                changed.append(record)
        for record in changed:
            record.pending = changed
        return changed

    def _begin(self, record: Record, state: int, limits: ShareLimits) -> None:
        if state == AVAILABLE and record.deliveries >= limits.deliveries_max:
            state = ARCHIVED
        record.state, record.member = state, ""

    def release(self, member: str, limits: ShareLimits) -> list[Record]:
        changed = [
            record for record in self.in_order() if record.state == ACQUIRED and record.member == member
        ]
        for record in changed:
            self._begin(record, ARCHIVED if record.offset < self.start else AVAILABLE, limits)
            record.pending = changed
        return changed

    def complete(
        self, changed: list[Record], member: str, is_stored: bool, now: int, limits: ShareLimits
    ) -> None:
        for record in changed:
            if record.pending is not changed:
                continue
            record.pending = None
            if is_stored:
                continue
            if record.deadline > now:
                record.state, record.member = ACQUIRED, member
            else:
                is_over = record.deliveries >= limits.deliveries_max
                record.state = ARCHIVED if is_over else AVAILABLE
        self.advance()

    def expire(self, now: int, limits: ShareLimits) -> None:
        for record in self.records.values():
            if record.state == ACQUIRED and record.deadline <= now:
                is_over = record.offset < self.start or record.deliveries >= limits.deliveries_max
                record.state, record.member = ARCHIVED if is_over else AVAILABLE, ""

    def move_log_start(self, offset: int) -> None:
        if offset <= self.start:
            return
        self.archive(self.start, offset - 1, AVAILABLE)
        self.start = offset
        self.end = max(self.end, offset)
        self.advance()


def joined(records: list[Record]) -> list[tuple[int, int, int]]:
    """Ranges of offsets that follow each other and have the same delivery count."""
    found: list[tuple[int, int, int]] = []
    for record in records:
        if found and found[-1][1] + 1 == record.offset and found[-1][2] == record.deliveries:
            found[-1] = found[-1][0], record.offset, record.deliveries
        else:
            found.append((record.offset, record.offset, record.deliveries))
    return found
