"""The journal of a coordinator: appends the records of its shard to the partition that stores them.

In: records as bytes. Out: batches on the path of produced ones. Records that are appended within one tick
share a batch, and the tick writes it. The journal also says whether everything appended is committed, which
is what responses wait for (as with acks=all).
Does not know: what the records mean, which requests wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING

from barnabas.broker.coordinators.stats import CoordinatorStats
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records import varint
from barnabas.records.batch import (
    BATCH_OVERHEAD,
    HEADER,
    MAGIC,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    seal,
)
from barnabas.records.compression import Compression, compress

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.replication.verification import Verification
    from barnabas.transactions.outcome import TransactionEnd

LOADING = KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The coordinator is loading its state.")
NOT_HERE = KafkaError(ErrorCode.NOT_COORDINATOR, "This broker is not the coordinator.")

KeyAndValue = tuple[bytes, bytes | None]
RECORD_OVERHEAD_MAX = 30  # sizes, deltas and attributes around key and value
NULL_AND_NO_HEADERS = varint.encode(-1) + b"\0"
LENGTHS_MAX = 512
LENGTHS = [varint.encode(length) for length in range(LENGTHS_MAX)]


class CoordinatorJournal:
    __slots__ = (
        "_base_timestamp",
        "_bytes",
        "_collected",
        "_compression",
        "_flush_error",
        "_max_timestamp",
        "_start_offset",
        "_stats",
        "partition",
    )

    def __init__(self, partition: Partition, compression: int, stats: CoordinatorStats | None = None) -> None:
        self.partition = partition
        self._stats = stats or CoordinatorStats()
        self._compression = Compression(compression)
        self._collected: list[bytes] = []  # encoded records of this tick, not yet a batch
        self._bytes = 0
        self._flush_error: KafkaError | None = None  # why records are lost; the next `flush` raises it
        self._start_offset = 0  # where the log ended when the first of them was collected
        self._base_timestamp = self._max_timestamp = 0

    @property
    def end_offset(self) -> int:
        return self.partition.log.end_offset + len(self._collected)

    @property
    def is_all_committed(self) -> bool:
        """Whether everything that was appended is committed."""
        partition = self.partition
        return partition.state.high_watermark >= partition.log.end_offset + len(self._collected)

    def append(self, records: Sequence[KeyAndValue], now_ms: int) -> None:
        """Append records atomically: after a crash the log has all of them or none. They may share a batch
        with other records of this tick. MESSAGE_TOO_LARGE changes nothing."""
        partition = self.partition
        partition.prepare_own()
        size = 0
        for key, value in records:
            size += len(key) + RECORD_OVERHEAD_MAX
            if value is not None:
                size += len(value)
        if self._bytes + size + BATCH_OVERHEAD > partition.rules.batch_bytes_max:
            self.flush()
            if size + BATCH_OVERHEAD > partition.rules.batch_bytes_max:
                self._append_alone(records, now_ms)
                return
        self._collect(records, size, now_ms)

    def _collect(self, records: Sequence[KeyAndValue], size: int, now_ms: int) -> None:
        collected = self._collected
        if not collected:
            self._start_offset = self.partition.log.end_offset
            self._base_timestamp = self._max_timestamp = now_ms
        elif now_ms > self._max_timestamp:
            self._max_timestamp = now_ms
        frame_records(records, now_ms - self._base_timestamp, collected)
        self._bytes += size

    def append_framed(self, framed: list[bytes], now_ms: int) -> None:
        """Append records that `frame_records` encoded, as a batch of their own."""
        self._stage_alone(framed, now_ms, (NO_PRODUCER_ID, NO_PRODUCER_EPOCH), self._compression, None)

    def _stage_alone(
        self,
        framed: list[bytes],
        now_ms: int,
        producer: tuple[int, int],
        attributes: int,
        verification: Verification | None,
    ) -> None:
        self.partition.prepare_own()
        self.flush()
        self._base_timestamp = self._max_timestamp = now_ms
        batch = self._build(framed, *producer, attributes)
        self.partition.append_own(batch, BatchHeader(batch), now_ms, verification)

    def _append_alone(self, records: Sequence[KeyAndValue], now_ms: int) -> None:
        """Append records that may be too large as a batch of their own: compressed, it may fit."""
        self._collect(records, 0, now_ms)
        try:
            self.flush()
        finally:
            self._collected = []

    def flush(self) -> None:
        """Stage the collected records; the partition calls this before the tick writes."""
        if self._flush_error is not None:
            error, self._flush_error = self._flush_error, None
            raise error
        collected = self._collected
        if not collected:
            return
        self._collected, self._bytes = [], 0
        if self.partition.log.end_offset != self._start_offset:
            # Responses wait for offsets that are not those of their records any more.
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"another writer appended to {self.partition}")
        started_ns = perf_counter_ns()
        batch = self._build(collected, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, self._compression)
        self.partition.append_own(batch, BatchHeader(batch), self._max_timestamp)
        self._stats.flushes.observe(perf_counter_ns() - started_ns)

    def _build(
        self, collected: list[bytes], producer_id: int, producer_epoch: int, attributes: int
    ) -> memoryview:
        batch = bytearray(
            HEADER.pack(
                0,
                0,
                NO_PARTITION_LEADER_EPOCH,
                MAGIC,
                0,
                attributes,
                len(collected) - 1,
                self._base_timestamp,
                self._max_timestamp,
                producer_id,
                producer_epoch,
                NO_SEQUENCE,
                len(collected),
            )
        )
        data = b"".join(collected)
        batch += data if self._compression == Compression.NONE else compress(self._compression, data)
        return memoryview(seal(batch))

    def write_early(self) -> None:
        """Write everything before the tick ends, because other records depend on it. On KafkaError the tick
        reports the error to the other requests that appended."""
        try:
            self.flush()
        except KafkaError as error:
            self._flush_error = error
            raise
        self.partition.log.write_early()

    # -- a client's transaction --------------------------------------------------------------------

    def append_transactional(
        self,
        records: Sequence[KeyAndValue],
        producer_id: int,
        producer_epoch: int,
        now_ms: int,
        verification: Verification | None = None,
    ) -> None:
        """Append records that are valid once the producer's transaction commits, as a batch of their own."""
        framed: list[bytes] = []
        frame_records(records, 0, framed)
        self.append_framed_transactional(framed, producer_id, producer_epoch, now_ms, verification)

    def append_framed_transactional(
        self,
        framed: list[bytes],
        producer_id: int,
        producer_epoch: int,
        now_ms: int,
        verification: Verification | None,
    ) -> None:
        """The same for records that `frame_records` encoded."""
        attributes = self._compression | TRANSACTIONAL_FLAG
        self._stage_alone(framed, now_ms, (producer_id, producer_epoch), attributes, verification)

    def append_marker(self, end: TransactionEnd, now_ms: int) -> int:
        """Append the marker that ends a producer's transaction. Out: its offset."""
        self.partition.prepare_own()
        self.flush()
        return self.partition.append_marker(end, now_ms)

    def append_in_parts(self, records: Sequence[KeyAndValue], now_ms: int) -> None:
        """Append records in as many batches as they need; for records that are valid each alone."""
        for record in records:
            self.append([record], now_ms)


def frame_records(records: Iterable[KeyAndValue], timestamp_delta: int, out: list[bytes]) -> None:
    """Encode records and add them to `out`, which holds the earlier records of the batch."""
    encode, lengths = varint.encode, LENGTHS
    head = b"\0" + encode(timestamp_delta)  # attributes in front
    for key, value in records:
        size = len(key)
        front = head + encode(len(out)) + (lengths[size] if size < LENGTHS_MAX else encode(size)) + key
        if value is None:
            body = front + NULL_AND_NO_HEADERS
        else:
            size = len(value)
            body = b"%b%b%b\0" % (front, lengths[size] if size < LENGTHS_MAX else encode(size), value)
        size = len(body)
        out.append((lengths[size] if size < LENGTHS_MAX else encode(size)) + body)


def as_coordinator_error(error: KafkaError) -> KafkaError:
    """Translate the error of a failed append for clients of the coordinator, as Apache Kafka does."""
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
