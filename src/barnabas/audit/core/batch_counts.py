"""Counts of record batches, from their headers where these suffice.

In: batches of a log or of a fetch response, the transactions that were aborted. Out: numbers by bucket. A
batch whose first and largest timestamp lie in one bucket is counted without a look at its records, if `opens`
is `HEADERS`; all others are opened and counted record by record. A header does not tell the smallest
timestamp: a record from an earlier bucket behind a first record from this one is counted as this bucket's.
`RECORDS` opens every batch with several records, and is exact for these too.
Does not know: files, connections, topics.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import StrEnum

from barnabas.audit.core.buckets import bucket_of
from barnabas.audit.core.delays import Delays
from barnabas.audit.core.messages import Entry, Tally
from barnabas.audit.core.window import ABORTED, COUNT
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
SPECIAL = APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG | DELETE_HORIZON_FLAG


class Opens(StrEnum):
    HEADERS = "headers"
    RECORDS = "records"


class BatchCounts:
    """The batches of one partition from an offset on, in order."""

    def __init__(self, start: int, width_ms: int, now_ms: int, opens: Opens = Opens.HEADERS) -> None:
        self.start = start
        self.end = start
        self.opened = 0  # batches whose records were read
        self.batches = 0
        self._width_ms = width_ms
        self._now_ms = now_ms
        self._opens = opens
        self._low = self._high = 0  # the bucket of the last batch
        self._numbers: dict[int, list[int]] = {}
        self._delays: dict[int, Delays] = {}

    def add_plain(self, chunk: bytes, at: int, length: int) -> int:
        """Count ordinary batches of the last batch's bucket by their headers, from `at` on. Returns the
        position of the first one that is neither, or is not in the chunk. `length` is that of all batches.

        Most batches are like this; one costs half a microsecond here, and three in `add`."""
        low, high, end, stamp, run = self._low, self._high, self.end, -1, 0
        several = self._opens is Opens.HEADERS
        head_max = len(chunk) - BATCH_OVERHEAD
        while at <= head_max:
            base, size, attributes, delta, first, largest, count = _head(chunk, at)
            size += LOG_OVERHEAD
            if (
                attributes & SPECIAL
                or not low <= first <= largest < high
                or base < end
                or size < BATCH_OVERHEAD
                or at + size > length
                or not (several or count == 1)
            ):
                break
            if largest != stamp:
                if run:
                    self._count(stamp, run, COUNT)
                stamp, run = largest, 0
            run += count
            end = base + delta + 1
            at += size
            self.batches += 1
        if run:
            self._count(stamp, run, COUNT)
        self.end = end
        return at

    def add(self, header: BatchHeader, read: Callable[[], bytes | memoryview], *, is_aborted: bool) -> None:
        """`read` returns the whole batch; it is called only if the header does not suffice."""
        self.batches += 1
        if header.next_offset <= self.end:
            return
        attributes = header.attributes
        if not attributes & CONTROL_FLAG and header.record_count:
            field = ABORTED if is_aborted else COUNT
            if attributes & APPEND_TIME_FLAG and header.base_offset >= self.start:
                self._count(header.max_timestamp, header.record_count, field)
            elif self._needs_records(header):
                self._open(header, read(), field)
            else:
                self._count(header.max_timestamp, header.record_count, field)
        self.end = header.next_offset
        self._low = max(bucket_of(header.max_timestamp, self._width_ms), 0)
        self._high = self._low + self._width_ms

    def _needs_records(self, header: BatchHeader) -> bool:
        if header.attributes & DELETE_HORIZON_FLAG or header.base_offset < self.start:
            return True  # the base timestamp is another time, or the log begins within the batch
        if header.record_count == 1:
            return False
        width_ms = self._width_ms
        return self._opens is Opens.RECORDS or (
            bucket_of(header.base_timestamp, width_ms) != bucket_of(header.max_timestamp, width_ms)
        )

    def _open(self, header: BatchHeader, batch: bytes | memoryview, field: int) -> None:
        self.opened += 1
        has_append_time = header.attributes & APPEND_TIME_FLAG
        first, base, base_offset = self.start, header.base_timestamp, header.base_offset
        for raw in scan(payload(batch, header), header.record_count):
            if base_offset + raw.offset_delta >= first:
                timestamp = header.max_timestamp if has_append_time else base + raw.timestamp_delta
                self._count(timestamp, 1, field)

    def _count(self, timestamp_ms: int, count: int, field: int) -> None:
        bucket = bucket_of(timestamp_ms, self._width_ms)
        numbers = self._numbers.get(bucket)
        if numbers is None:
            numbers = self._numbers[bucket] = [0, 0, 0, 0]
            self._delays[bucket] = Delays()
        numbers[field] += count
        if field == COUNT and timestamp_ms >= 0:
            self._delays[bucket].add(self._now_ms - timestamp_ms, count)

    def entries(self, partition: int) -> tuple[Entry, ...]:
        return tuple(
            Entry(bucket, Tally(*numbers), partition, self._delays[bucket])
            for bucket, numbers in sorted(self._numbers.items())
        )
