"""The records that a sink's consumer fetched, as columns: no object is made for a record.

In: the bytes of a partition in a response of Fetch. Out: raw records as columns, and the offset behind them.
A batch that cannot be read ends the columns before it. Does not know: groups, converters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from barnabas.client.consumers.fetcher import end_of
from barnabas.client.core.fetching import PartitionData, aborted_in
from barnabas.client.core.topology import TopicPartition
from barnabas.connect.tasks.raw_records import RawRecords
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.spark.reading.batches import Unreadable, next_offset_of, read_chunks
from barnabas.spark.reading.columns import Table
from barnabas.spark.reading.unpacking import Room

COLUMNS = ("key", "value", "offset", "timestamp", "headers")
OFFSET_MAX = 2**63 - 1


class HeldBytes:
    """One partition of a response; it is taken as a whole."""

    __slots__ = ("_data", "_partition", "_read_committed", "_taken", "end_offset", "position")

    def __init__(
        self, partition: TopicPartition, data: PartitionData, position: int, read_committed: bool
    ) -> None:
        self.end_offset = end_of(data, read_committed=read_committed)
        self.position = position
        self._partition = partition
        self._data = data
        self._read_committed = read_committed

    def pop(self, bytes_wanted: int, *, at_least_one: bool) -> tuple[Sequence[Fetched], int, bool]:
        """All of it, however little is wanted: a response has a bound of its own."""
        data = self._data
        first, size = self.position, len(data.records or b"")
        self.position = next_offset_of(memoryview(data.records or b""), first)
        if self.position == first:
            text = f"{self._partition} sent no whole batch at offset {first}"
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, text)
        found = Fetched(self._partition, data, first, self.position, self._read_committed)
        return [found], size, False


@dataclass(frozen=True, slots=True)
class Fetched:
    where: TopicPartition
    data: PartitionData
    first: int
    next_offset: int
    read_committed: bool


@dataclass(frozen=True, slots=True)
class Polled:
    """Records of one partition, and the offset behind them. `damage` says why it is not that of the fetch."""

    where: TopicPartition
    raw: RawRecords
    first: int  # where reading began
    next_offset: int
    damage: KafkaError | None = None


class Damage(Unreadable):
    """Notes the first batch that cannot be read."""

    offset = OFFSET_MAX
    error: KafkaError | None = None

    def __call__(self, base_offset: int, error: KafkaError) -> None:
        if base_offset < self.offset:
            self.offset, self.error = base_offset, error


def read(fetched: Fetched, room: Room, *, checks_crc: bool = True) -> Polled:
    """Decode it in the thread of the task."""
    where, data = fetched.where, fetched.data
    damage = Damage(where)
    table = Table(where.topic, where.partition, COLUMNS, damage)
    aborted = aborted_in(data) if fetched.read_committed else None
    batches: list[pa.RecordBatch] = []
    records = memoryview(data.records or b"")
    chunks = read_chunks(
        records, fetched.first, OFFSET_MAX, aborted, room, checks_crc=checks_crc, unreadable=damage
    )
    for chunk in chunks:
        found = table.batch(chunk, fetched.first, OFFSET_MAX)
        if damage.error is not None:
            found = table.batch(chunk, fetched.first, damage.offset)
        batches.append(found)
        if damage.error is not None:
            break
    raws = [RawRecords.of_batch(where.topic, where.partition, each) for each in batches if each.num_rows]
    raw = RawRecords.joined(where.topic, raws)
    if damage.error is None:
        return Polled(where, raw, fetched.first, fetched.next_offset)
    text = f"the batch at offset {damage.offset} of {where} cannot be read: {damage.error.message}"
    return Polled(where, raw, fetched.first, damage.offset, KafkaError(damage.error.code, text))
