"""Records waiting to be sent, gathered into one batch after another for each partition.

In: records with their partition. Out: batches that are due, oldest first, one at a time for a partition so
that order survives a retry. Bounded by the caller through `bytes_buffered`.
Does not know: leaders, connections, compression.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.client.topology import TopicPartition
from barnabas.records.record import Headers, Record

RECORD_OVERHEAD_BYTES = 21  # the most that lengths, deltas and attributes of one record take
BATCH_OVERHEAD_BYTES = 61


class RecordMetadata(NamedTuple):
    """Where a record was written; offset -1 when no acknowledgement was asked for."""

    topic: str
    partition: int
    offset: int
    timestamp: int


@dataclass(slots=True, eq=False)
class PendingBatch:
    where: TopicPartition
    due_at: float
    give_up_at: float
    base_offset: "asyncio.Future[int]"
    records: list[Record] = field(default_factory=list)
    size_bytes: int = BATCH_OVERHEAD_BYTES
    base_sequence: int | None = None
    append_time_ms: int = -1
    attempts: int = 0
    sealed: bool = False


class SentRecord:
    """A record on its way: await it for its RecordMetadata, or the error that stopped it."""

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: PendingBatch, index: int) -> None:
        self._batch = batch
        self._index = index

    def __await__(self):  # type: ignore[no-untyped-def]
        base_offset = yield from asyncio.shield(self._batch.base_offset).__await__()
        batch = self._batch
        offset = base_offset + self._index if base_offset >= 0 else -1
        timestamp = batch.records[self._index].timestamp if batch.append_time_ms < 0 else batch.append_time_ms
        return RecordMetadata(*batch.where, offset, timestamp)


class Accumulator:
    def __init__(self, batch_size_bytes: int, linger_ms: float, delivery_timeout_ms: float) -> None:
        self.batch_size_bytes = batch_size_bytes
        self.linger_ms = linger_ms
        self.delivery_timeout_ms = delivery_timeout_ms
        self.bytes_buffered = 0
        self._queues: dict[TopicPartition, deque[PendingBatch]] = {}

    def append(self, where: TopicPartition, record: Record, now: float) -> tuple[SentRecord, bool]:
        """Add a record; also whether that left a full batch to send."""
        size = record_size(record)
        queue = self._queues.setdefault(where, deque())
        batch = queue[-1] if queue else None
        full = False
        if batch is None or batch.sealed or batch.size_bytes + size > self.batch_size_bytes:
            if batch is not None and not batch.sealed:
                batch.due_at = min(batch.due_at, now)
                full = True
            base_offset: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            due_at, give_up_at = now + self.linger_ms / 1000, now + self.delivery_timeout_ms / 1000
            batch = PendingBatch(where, due_at, give_up_at, base_offset)
            queue.append(batch)
        batch.records.append(record)
        batch.size_bytes += size
        self.bytes_buffered += size
        return SentRecord(batch, len(batch.records) - 1), full

    def first_batches(self) -> Iterator[PendingBatch]:
        """The oldest batch of each partition that has one."""
        for queue in self._queues.values():
            if queue:
                yield queue[0]

    def all_batches(self) -> list[PendingBatch]:
        """Everything that waits, oldest first within a partition."""
        return [batch for queue in self._queues.values() for batch in queue]

    def is_empty(self) -> bool:
        return not any(self._queues.values())

    def take(self, batch: PendingBatch) -> None:
        """The batch is on the wire: later records start a new one."""
        batch.sealed = True
        batch.attempts += 1

    def done(self, batch: PendingBatch) -> None:
        """The batch is written or given up."""
        queue = self._queues[batch.where]
        assert queue[0] is batch
        queue.popleft()
        self.bytes_buffered -= batch.size_bytes - BATCH_OVERHEAD_BYTES
        if not queue:
            del self._queues[batch.where]


def record_size(record: Record) -> int:
    """An upper bound of what a record adds to a batch."""
    return (
        RECORD_OVERHEAD_BYTES
        + len(record.key or b"")
        + len(record.value or b"")
        + headers_size(record.headers)
    )


def headers_size(headers: Headers) -> int:
    return sum(10 + len(name.encode()) + len(value or b"") for name, value in headers)
