"""Counts of record batches, from their headers where these suffice.

In: batches of a log or of a fetch response, the transactions that were aborted. Out: numbers by bucket. A
batch whose first and largest timestamp lie in one bucket is counted without a look at its records, if `opens`
is `HEADERS`; all others are opened and counted record by record. A header does not tell the smallest
timestamp. So a batch that begins less than a *guard* behind the start of its bucket is opened too, since a
record in it may be older than the first one. The guard grows to twice what was seen (`Disorder`).
`RECORDS` opens every batch with several records, and is exact whatever the order. `CONTENTS` opens every
batch and sums up what the records hold. A batch that cannot be read is told, and passed over.
Does not know: files, connections, topics.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import StrEnum

from barnabas.audit.core.buckets import bucket_of
from barnabas.audit.core.contents import MODULUS_MASK, content_of
from barnabas.audit.core.delays import Delays
from barnabas.audit.core.messages import ENTRIES_MAX, NO_EPOCH, Entry, Tally
from barnabas.audit.core.window import ABORTED, CONTENT, COUNT, SUMMED
from barnabas.protocol import KafkaError
from barnabas.records.batch import (
    APPEND_TIME_FLAG,
    BATCH_OVERHEAD,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_OVERHEAD,
    TRANSACTIONAL_FLAG,
    BatchHeader,
)
from barnabas.records.record import payload, scan

# Base offset, length, attributes, last offset delta, first and largest timestamp, number of records.
_head = struct.Struct(">qi9xhiqq14xi").unpack_from
_epoch = struct.Struct(">i").unpack_from
EPOCH_AT = 12
GUARD_MS = 10_000
GUARD_PARTS = 20  # of a bucket: the guard is at most this part of it, before disorder was seen
SPECIAL = APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG | DELETE_HORIZON_FLAG


class Opens(StrEnum):
    HEADERS = "headers"
    RECORDS = "records"
    CONTENTS = "contents"


class Disorder:
    """How far records of a partition were older than the first one of their batch: so far other batches are
    not trusted either."""

    __slots__ = ("guard_ms",)

    def __init__(self, width_ms: int) -> None:
        self.guard_ms = min(GUARD_MS, width_ms // GUARD_PARTS)

    def saw(self, older_ms: int) -> None:
        self.guard_ms = max(self.guard_ms, 2 * older_ms)


class BatchCounts:
    """The batches of one partition from an offset on, in order."""

    def __init__(
        self,
        start: int,
        width_ms: int,
        now_ms: int,
        opens: Opens = Opens.HEADERS,
        disorder: Disorder | None = None,
    ) -> None:
        self.start = start
        self.end = start
        self.opened = 0  # batches whose records were read
        self.batches = 0
        self.epoch = NO_EPOCH  # leader epoch of the last batch
        self.damaged = 0  # records that cannot be read
        self._disorder = disorder or Disorder(width_ms)
        self._width_ms = width_ms
        self._now_ms = now_ms
        self._opens = opens
        self._low = self._high = 0  # the bucket of the last batch, without the guard at its start
        self._numbers: dict[int, list[int]] = {}
        self._delays: dict[int, Delays] = {}
        self._firsts: dict[int, int] = {}  # by bucket: the first offset
        self.is_full = False  # one message holds no more buckets: the next one goes on at `end`

    def add_plain(self, chunk: bytes, at: int, length: int) -> int:
        """Count ordinary batches of the last batch's bucket by their headers, from `at` on. Returns the
        position of the first one that is neither, or is not in the chunk. `length` is that of all batches.

        Most batches are like this; one costs half a microsecond here, and three in `add`."""
        if self._opens is Opens.CONTENTS:
            return at
        low, high, end, stamp, run = self._low, self._high, self.end, -1, 0
        run_at = end
        guarded, last_at = low + self._disorder.guard_ms, -1
        several = self._opens is Opens.HEADERS
        head_max = len(chunk) - BATCH_OVERHEAD
        while at <= head_max:
            base, size, attributes, delta, first, largest, count = _head(chunk, at)
            size += LOG_OVERHEAD
            if (
                attributes & SPECIAL
                or not (guarded if count > 1 else low) <= first <= largest < high
                or base < end
                or size < BATCH_OVERHEAD
                or at + size > length
                or not (several or count == 1)
            ):
                break
            if largest != stamp:
                if run:
                    self._count(stamp, run, COUNT, run_at)
                stamp, run, run_at = largest, 0, base
            run += count
            end = base + delta + 1
            last_at = at
            at += size
            self.batches += 1
        if run:
            self._count(stamp, run, COUNT, run_at)
        self.end = end
        if last_at >= 0:
            (self.epoch,) = _epoch(chunk, last_at + EPOCH_AT)
        return at

    def add(self, header: BatchHeader, read: Callable[[], bytes | memoryview], *, is_aborted: bool) -> None:
        """`read` returns the whole batch; it is called only if the header does not suffice."""
        self.batches += 1
        if header.next_offset <= self.end or self.is_full:
            return
        attributes = header.attributes
        if not attributes & CONTROL_FLAG and header.record_count:
            field = ABORTED if is_aborted else COUNT
            is_summed = self._opens is Opens.CONTENTS
            if attributes & APPEND_TIME_FLAG and header.base_offset >= self.start and not is_summed:
                self._count(header.max_timestamp, header.record_count, field, header.base_offset)
            elif self._needs_records(header):
                self._open_or_tell(header, read, field)
            else:
                self._count(header.max_timestamp, header.record_count, field, header.base_offset)
        if not self.is_full:
            self.end = header.next_offset
            self.is_full = len(self._numbers) >= ENTRIES_MAX
        self.epoch = header.partition_leader_epoch
        self._low = max(bucket_of(header.max_timestamp, self._width_ms), 0)
        self._high = self._low + self._width_ms

    def _needs_records(self, header: BatchHeader) -> bool:
        if self._opens is Opens.CONTENTS:
            return True
        if header.attributes & DELETE_HORIZON_FLAG or header.base_offset < self.start:
            return True  # the base timestamp is another time, or the log begins within the batch
        if header.record_count == 1:
            return False
        bucket = bucket_of(header.base_timestamp, self._width_ms)
        return (
            self._opens is Opens.RECORDS
            or bucket != bucket_of(header.max_timestamp, self._width_ms)
            or 0 <= header.base_timestamp < bucket + self._disorder.guard_ms
        )

    def _open_or_tell(self, header: BatchHeader, read: Callable[[], bytes | memoryview], field: int) -> None:
        self.opened += 1
        batch = read()
        try:
            self._open(header, batch, field)
        except KafkaError:
            self.damaged += header.record_count

    def _open(self, header: BatchHeader, batch: bytes | memoryview, field: int) -> None:
        has_append_time = header.attributes & APPEND_TIME_FLAG
        is_summed = self._opens is Opens.CONTENTS and field == COUNT
        first, base, base_offset = self.start, header.base_timestamp, header.base_offset
        data = payload(batch, header)
        found = list(scan(data, header.record_count))  # all of a batch, or nothing of one that is damaged
        oldest = None
        for raw in found:
            delta = raw.timestamp_delta
            if oldest is None or delta < oldest:
                oldest = delta
            if base_offset + raw.offset_delta < first:
                continue
            timestamp = header.max_timestamp if has_append_time else base + delta
            content = None
            if (
                len(self._numbers) >= ENTRIES_MAX
                and bucket_of(timestamp, self._width_ms) not in self._numbers
            ):
                self.end, self.is_full = base_offset + raw.offset_delta, True
                break
            if is_summed:
                key = data[raw.key_start : raw.key_start + raw.key_size] if raw.key_size >= 0 else None
                value = (
                    data[raw.value_start : raw.value_start + raw.value_size] if raw.value_size >= 0 else None
                )
                content = content_of(key, value, timestamp)
            self._count(timestamp, 1, field, base_offset + raw.offset_delta, content)
        if found and oldest is not None and not has_append_time and oldest < found[0].timestamp_delta:
            self._disorder.saw(found[0].timestamp_delta - oldest)

    def _count(
        self, timestamp_ms: int, count: int, field: int, offset: int, content: int | None = None
    ) -> None:
        bucket = bucket_of(timestamp_ms, self._width_ms)
        numbers = self._numbers.get(bucket)
        if numbers is None:
            numbers = self._numbers[bucket] = [0, 0, 0, 0, 0, 0]
            self._delays[bucket] = Delays()
            self._firsts[bucket] = offset
        numbers[field] += count
        if content is not None:
            numbers[SUMMED] += count
            numbers[CONTENT] = (numbers[CONTENT] + content) & MODULUS_MASK
        if field == COUNT and timestamp_ms >= 0:
            self._delays[bucket].add(self._now_ms - timestamp_ms, count)

    def entries(self, partition: int) -> tuple[Entry, ...]:
        return tuple(
            Entry(bucket, Tally(*numbers), partition, self._delays[bucket], self._firsts[bucket])
            for bucket, numbers in sorted(self._numbers.items())
        )
