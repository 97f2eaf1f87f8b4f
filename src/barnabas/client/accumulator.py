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
    """Partition and offset of a written record; offset -1 if the producer asked for no acknowledgement."""

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
    halves: "tuple[PendingBatch, PendingBatch] | None" = None  # sent instead of a batch that was too large

    @property
    def count(self) -> int:
        return len(self.records)

    def holder(self, index: int) -> "tuple[PendingBatch, int]":
        """The batch that a record was sent in, and its index there."""
        batch = self
        while batch.halves is not None:
            first, second = batch.halves
            batch, index = (first, index) if index < first.count else (second, index - first.count)
        return batch, index


class SentRecord:
    """A record on its way: await it for its RecordMetadata, or the error that stopped it."""

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: PendingBatch, index: int) -> None:
        self._batch = batch
        self._index = index

    def __await__(self):  # type: ignore[no-untyped-def]
        yield from asyncio.shield(self.done).__await__()
        return self.result()

    @property
    def done(self) -> "asyncio.Future[int]":
        """Of the whole batch: records that were sent together share it. Wait for it, and do not cancel it."""
        return self._batch.base_offset

    @property
    def is_done(self) -> bool:
        """Whether the record is written or given up: `result` does not wait then."""
        return self._batch.base_offset.done()

    def result(self) -> RecordMetadata:
        """The place of the written record, or the error that stopped it. Call it only when it is done."""
        batch, index = self._batch, self._index
        if batch.halves is not None:
            batch, index = batch.holder(index)
        base_offset = batch.base_offset.result()
        offset = base_offset + index if base_offset >= 0 else -1
        timestamp = batch.records[index].timestamp if batch.append_time_ms < 0 else batch.append_time_ms
        return RecordMetadata(*batch.where, offset, timestamp)


class Accumulator:
    def __init__(self, batch_size_bytes: int, linger_ms: float, delivery_timeout_ms: float) -> None:
        self.batch_size_bytes = batch_size_bytes
        self.linger_ms = linger_ms
        self.delivery_timeout_ms = delivery_timeout_ms
        self.bytes_buffered = 0
        self.queue: SendQueue[PendingBatch] = SendQueue(IN_FLIGHT_MAX)

    def append(
        self, partition: TopicPartition, record: Record, size: int, now: float
    ) -> tuple[SentRecord, bool]:
        """Add a record of a `record_size`; also whether that left a full batch to send."""
        batch = self.queue.last_unsent(partition)
        is_open = batch is not None and not batch.attempts  # a batch that was sent once stays as it was
        full = False
        if batch is None or not is_open or batch.size_bytes + size > self.batch_size_bytes:
            if batch is not None and is_open:
                batch.due_at = min(batch.due_at, now)
                full = True
            due_at, give_up_at = now + self.linger_ms / 1000, now + self.delivery_timeout_ms / 1000
            batch = PendingBatch(partition, due_at, give_up_at, new_future())
            self.queue.append(batch)
        batch.records.append(record)
        batch.size_bytes += size
        self.bytes_buffered += size
        return SentRecord(batch, len(batch.records) - 1), full

    def split(self, batch: PendingBatch) -> None:
        """Send two halves instead of a batch that the broker finds too large. The batch is done when both
        are; its records know the half that they went with."""
        middle = batch.count // 2
        halves = []
        for records in (batch.records[:middle], batch.records[middle:]):
            half = PendingBatch(batch.where, batch.due_at, batch.give_up_at, new_future(), records)
            half.attempts = 1  # it gets no more records
            half.size_bytes += sum(map(record_size, records))
            half.base_offset.add_done_callback(lambda _: settle_whole(batch))
            halves.append(half)
        batch.halves = (halves[0], halves[1])
        self.queue.replace(batch.where, halves)
        self.queue.send_again(batch.where)

    def abandon(self) -> list[PendingBatch]:
        """Everything that was not written yet: nothing is queued after this."""
        queue, self.queue = self.queue, SendQueue(IN_FLIGHT_MAX)
        return queue.all_batches()

    def released(self, batch: PendingBatch) -> None:
        """The batch is written or given up."""
        self.bytes_buffered -= batch.size_bytes - BATCH_OVERHEAD_BYTES


def new_future() -> "asyncio.Future[int]":
    return asyncio.get_running_loop().create_future()


def settle_whole(batch: PendingBatch) -> None:
    """End a batch whose halves are both done: with an error if one of them failed."""
    assert batch.halves is not None
    first, second = (half.base_offset for half in batch.halves)
    if batch.base_offset.done() or not (first.done() and second.done()):
        return
    error = first.exception() or second.exception()
    if error is None:
        batch.base_offset.set_result(first.result())
    else:
        # Records of the half that was written have their result: `SentRecord` asks the half.
        batch.base_offset.set_exception(error)
        batch.base_offset.exception()


def record_size(record: Record) -> int:
    """An upper bound of what a record adds to a batch."""
    _, _, key, value, headers = record
    size = RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"")
    return size + headers_size(headers) if headers else size


def headers_size(headers: Headers) -> int:
    return sum(10 + len(name.encode()) + len(value or b"") for name, value in headers)
