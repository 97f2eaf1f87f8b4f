"""The decision of compaction about a batch: keep it, remove it, remove some records, or keep only its header.

In: batches in order, the last offset of every key (`LastOffsets`), aborted transactions
(`CleanedTransactions`). Out: the bytes to write, or nothing. A batch keeps its first and last offset, so that
producers' sequences and the end of the log can still be read from it. Follows KIP-534: a tombstone is removed
`delete.retention.ms` after the cleaner first saw it; the batch's header holds that time.
Does not know: files, segments.
"""

from barnabas.records.batch import (
    APPEND_TIME_FLAG,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
)
from barnabas.records.compression import compress
from barnabas.records.crc32c import Buffer
from barnabas.records.recompress import reframe
from barnabas.records.record import payload
from barnabas.storage.compaction.job import NO_DATA, CleaningJob, CleaningStats
from barnabas.storage.compaction.last_offsets import LastOffsets, Survivors
from barnabas.storage.compaction.record_bytes import starts_of, timestamp_deltas_of, with_timestamp_delta
from barnabas.storage.compaction.transactions import CleanedTransactions

EMPTIED_FLAGS = (
    APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG
)  # the only ones that an empty batch keeps


class BatchFilter:
    """One pass over a log."""

    __slots__ = ("_end_offset", "_job", "_last_records", "_offsets", "_stats", "_transactions")

    def __init__(
        self, job: CleaningJob, offsets: LastOffsets, transactions: CleanedTransactions, stats: CleaningStats
    ) -> None:
        self._job = job
        self._offsets = offsets
        self._transactions = transactions
        self._stats = stats
        self._end_offset = job.first_uncleanable_offset
        self._last_records = {producer_id: (offset, epoch) for producer_id, offset, epoch in job.last_records}

    def __call__(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        """The bytes to write for this batch: the batch itself, a smaller one, or None for nothing."""
        self._stats.records_read += header.record_count
        if header.attributes & CONTROL_FLAG:
            kept = self._control(header, batch)
        elif self._transactions.visit_data(header):
            kept = None
        else:
            kept = self._data(header, batch)
        if kept is None and self._is_needed_empty(header):
            return emptied(header)
        return kept

    def _control(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        may_go = self._transactions.visit_control(header, batch)
        horizon_ms = header.delete_horizon_ms
        if header.record_count == 0 or (may_go and horizon_ms is not None and horizon_ms <= self._job.now_ms):
            return None
        self._stats.records_written += header.record_count
        if may_go and horizon_ms is None:
            return rebuilt(header, payload(batch, header), None, self._new_horizon_ms())
        return batch

    def _data(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        if header.record_count == 0:
            return None
        survivors = self._offsets.survivors(header, batch, self._job.now_ms)
        if survivors is None:
            self._stats.records_written += header.record_count
            return batch
        if survivors.kept_count == 0:
            return None
        self._stats.records_written += survivors.kept_count
        sets_horizon = survivors.has_tombstones and header.delete_horizon_ms is None
        if survivors.kept is None and not sets_horizon:
            return batch
        return self._rebuilt(header, batch, survivors, sets_horizon)

    def _rebuilt(
        self, header: BatchHeader, batch: memoryview, survivors: Survivors, sets_horizon: bool
    ) -> bytearray:
        data = survivors.data if survivors.data is not None else payload(batch, header)
        return rebuilt(header, data, survivors.kept, self._new_horizon_ms() if sets_horizon else None)

    def _new_horizon_ms(self) -> int:
        return self._job.now_ms + self._job.delete_retention_ms

    def _is_needed_empty(self, header: BatchHeader) -> bool:
        """Whether the header is still needed without records: it holds the last sequence and epoch of an
        active producer, or the end of the log."""
        if header.next_offset == self._end_offset:
            return True
        last = self._last_records.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        last_data_offset, producer_epoch = last
        if last_data_offset != NO_DATA:
            return header.last_offset == last_data_offset
        return header.attributes & CONTROL_FLAG != 0 and header.producer_epoch == producer_epoch


def emptied(header: BatchHeader) -> bytearray:
    """The same batch without its records."""
    return reframe(
        header,
        b"",
        attributes=header.attributes & EMPTIED_FLAGS,
        record_count=0,
        base_timestamp=NO_TIMESTAMP,
    )


def rebuilt(header: BatchHeader, data: bytes, kept: list[int] | None, horizon_ms: int | None) -> bytearray:
    """The batch with some of its records (None: all). A new delete horizon replaces its base timestamp."""
    starts = starts_of(data, header.record_count)
    if kept is None:
        kept = list(range(header.record_count))
    pieces = [data[starts[index] : starts[index + 1]] for index in kept]
    attributes, max_timestamp = header.attributes, header.max_timestamp
    base_timestamp = header.base_timestamp
    if not attributes & APPEND_TIME_FLAG:
        deltas = timestamp_deltas_of(data, [starts[index] for index in kept])
        max_timestamp = base_timestamp + max(deltas)
    if horizon_ms is not None:
        shift = base_timestamp - horizon_ms
        pieces = [with_timestamp_delta(piece, shift) for piece in pieces]
        attributes, base_timestamp = attributes | DELETE_HORIZON_FLAG, horizon_ms
    records = b"".join(pieces)
    return reframe(
        header,
        compress(attributes & COMPRESSION_MASK, records) if attributes & COMPRESSION_MASK else records,
        attributes=attributes,
        record_count=len(pieces),
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
    )
