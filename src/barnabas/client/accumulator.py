"""Records waiting to be sent, gathered into one batch after another for each partition.

In: records with their partition. Out: batches that are due, oldest first, one at a time for a partition so
that order survives a retry. Bounded by the caller through `bytes_buffered`.
Does not know: leaders, connections, compression.
"""

import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.client.core.send_queue import SendQueue
from barnabas.client.core.topology import TopicPartition
from barnabas.records.record import Headers, Record

RECORD_OVERHEAD_BYTES = 21  # the most that lengths, deltas and attributes of one record take
BATCH_OVERHEAD_BYTES = 61
IN_FLIGHT_MAX = 1  # of a partition


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

    @property
    def count(self) -> int:
        return len(self.records)


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
        self.queue: SendQueue[PendingBatch] = SendQueue(IN_FLIGHT_MAX)

    def append(self, where: TopicPartition, record: Record, now: float) -> tuple[SentRecord, bool]:
        """Add a record; also whether that left a full batch to send."""
        size = record_size(record)
        batch = self.queue.last_unsent(where)
        is_open = batch is not None and not batch.attempts  # what went out once stays as it was
        full = False
        if batch is None or not is_open or batch.size_bytes + size > self.batch_size_bytes:
            if batch is not None and is_open:
                batch.due_at = min(batch.due_at, now)
                full = True
            base_offset: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            due_at, give_up_at = now + self.linger_ms / 1000, now + self.delivery_timeout_ms / 1000
            batch = PendingBatch(where, due_at, give_up_at, base_offset)
            self.queue.append(batch)
        batch.records.append(record)
        batch.size_bytes += size
        self.bytes_buffered += size
        return SentRecord(batch, batch.count - 1), full

    def abandon(self) -> list[PendingBatch]:
        """Everything that was not written yet: nothing is queued after this."""
        queue, self.queue = self.queue, SendQueue(IN_FLIGHT_MAX)
        return queue.all_batches()

    def released(self, batch: PendingBatch) -> None:
        """The batch is written or given up."""
        self.bytes_buffered -= batch.size_bytes - BATCH_OVERHEAD_BYTES


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
