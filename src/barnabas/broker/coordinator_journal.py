"""The journal of a coordinator: records of its shard, appended to the partition that keeps them.

In: records as bytes. Out: batches staged on the same way as produced ones, so that one tick writes them all;
whether everything appended is committed, which is what answers wait for (as with acks=all).
Does not know: what the records mean, who is answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import BATCH_OVERHEAD, BatchHeader
from barnabas.records.compression import Compression
from barnabas.records.record import Record, build_batch

if TYPE_CHECKING:
    from barnabas.broker.partition import Partition

LOADING = KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The coordinator is loading its groups.")
NOT_HERE = KafkaError(ErrorCode.NOT_COORDINATOR, "This broker does not coordinate the group.")

KeyAndValue = tuple[bytes, bytes | None]
RECORD_OVERHEAD_MAX = 30  # sizes, deltas and attributes around key and value


class CoordinatorJournal:
    __slots__ = ("_compression", "partition")

    def __init__(self, partition: Partition, compression: int) -> None:
        self.partition = partition
        self._compression = Compression(compression)

    @property
    def end_offset(self) -> int:
        return self.partition.log.end_offset

    @property
    def is_settled(self) -> bool:
        """Whether everything that was appended is committed."""
        partition = self.partition
        return not partition.is_dirty and partition.state.high_watermark >= partition.log.end_offset

    @property
    def settles_with_tick(self) -> bool:
        """Whether the end of this tick commits everything: no other replica has to follow."""
        partition = self.partition
        return partition.is_dirty and len(partition.state.isr) == 1

    def append(self, records: Iterable[KeyAndValue], now_ms: int) -> None:
        """Stage records as one batch: all of them are there after a crash, or none."""
        packed = [Record(timestamp=now_ms, key=key, value=value) for key, value in records]
        batch = memoryview(build_batch(packed, compression=self._compression))
        self.partition.append_own(batch, BatchHeader(batch), now_ms)

    def append_in_parts(self, records: Sequence[KeyAndValue], now_ms: int) -> None:
        """Stage records in as many batches as they need: for those that mean something each alone."""
        bytes_max = self.partition.rules.batch_bytes_max
        part: list[KeyAndValue] = []
        part_bytes = BATCH_OVERHEAD
        for key, value in records:
            size = len(key) + len(value or b"") + RECORD_OVERHEAD_MAX
            if part and part_bytes + size > bytes_max:
                self.append(part, now_ms)
                part, part_bytes = [], BATCH_OVERHEAD
            part.append((key, value))
            part_bytes += size
        if part:
            self.append(part, now_ms)


def as_coordinator_error(error: KafkaError) -> KafkaError:
    """What an append that failed means to a client of the coordinator, as Apache Kafka translates it."""
    return KafkaError(TRANSLATED.get(error.code, error.code), error.message)


TRANSLATED = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
