"""Cleaning a log: the last record of every key stays, older records of the same key are removed.

In: a `CleaningJob`. Out: complete and durable `.cleaned` files, one after the other. The caller swaps each
one in (see `logs.replacement`) before it asks for the next. The cleaner first collects the keys of the dirty
part. Then it copies all segments from the first on, without the removed records. This is slow: it decodes
every record that it reads.
Does not know: concurrent use of the log, processes, when a log is worth cleaning.
"""

import time
from collections.abc import Callable, Generator, Iterator

from barnabas.protocol import KafkaError
from barnabas.records.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, BatchHeader
from barnabas.records.crc32c import Buffer
from barnabas.storage.compaction.filtering import BatchFilter
from barnabas.storage.compaction.grouping import SegmentSizes, group_segments
from barnabas.storage.compaction.job import CleanedGroup, CleaningJob, CleaningStats
from barnabas.storage.compaction.last_offsets import LastOffsets
from barnabas.storage.compaction.reading import Batches, read_batches
from barnabas.storage.compaction.record_bytes import BadRecords
from barnabas.storage.compaction.throttle import Throttle
from barnabas.storage.compaction.transactions import CleanedTransactions
from barnabas.storage.files import names
from barnabas.storage.files.partial_writes import finish_write
from barnabas.storage.logs.context import LogContext
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.segment_writer import Extent, SegmentWriter
from barnabas.storage.segments.transaction_index import AbortedTransaction, encode

COPIED_BYTES_MAX = 4096
UNREADABLE = (KafkaError, BadRecords, ValueError, IndexError)  # raised for bytes that are not records
WRITTEN_BUFFERS_MAX = 512  # in one system call


class UnreadableBatch(Exception):
    """A batch with a correct checksum whose records cannot be read. Its log cannot be cleaned."""

    def __init__(self, header: BatchHeader, cause: Exception) -> None:
        reason = cause.message if isinstance(cause, KafkaError) else str(cause)
        super().__init__(
            f"the batch of offsets {header.base_offset} to {header.last_offset} cannot be read: {reason}"
        )


class Cleaner:
    """One pass over one log."""

    __slots__ = ("_context", "_job", "_now", "_segments", "_throttle", "offsets", "stats")

    def __init__(
        self,
        job: CleaningJob,
        context: LogContext,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._job = job
        self._context = context
        self._now = now
        self._throttle = Throttle(job.io_bytes_per_second, now, sleep)
        self._segments = [Segment(context, job.directory, base, size) for base, size in job.segments]
        self.offsets = LastOffsets(job.first_dirty_offset, job.key_bytes_max)
        self.stats = CleaningStats()

    def run(self) -> Generator[CleanedGroup, None, None]:
        """Yield one cleaned group at a time. `stats` are complete after the last one."""
        began = self._now()
        stats, offsets, job = self.stats, self.offsets, self._job
        aborted = self._aborted_transactions()
        self._collect_keys(CleanedTransactions(aborted))
        stats.end_offset = offsets.latest_offset + 1
        stats.key_bytes, stats.buffer_utilization = offsets.key_bytes, offsets.utilization
        stats.invalid_records = offsets.invalid_records
        stats.map_seconds = self._now() - began
        transactions = CleanedTransactions(aborted)
        batch_filter = BatchFilter(job, offsets, transactions, stats)
        by_base_offset = {segment.base_offset: segment for segment in self._segments}
        sizes = [self._sizes(segment) for segment in self._segments if segment.base_offset < stats.end_offset]
        groups = group_segments(
            sizes, job.segment_bytes, job.segment_index_bytes, job.first_uncleanable_offset
        )
        for group in groups:
            old = [by_base_offset[each.base_offset] for each in group]
            cleaned = self._clean_group(old, batch_filter, transactions)
            yield CleanedGroup(tuple(segment.base_offset for segment in old), cleaned.size)
        stats.seconds = self._now() - began

    # The keys of the dirty part

    def _collect_keys(self, transactions: CleanedTransactions) -> None:
        job, offsets = self._job, self.offsets
        end = job.first_uncleanable_offset
        dirty = [segment for segment in self._segments if segment.base_offset < end]
        for index, segment in enumerate(dirty):
            following = dirty[index + 1].base_offset if index + 1 < len(dirty) else end
            if following <= job.first_dirty_offset:
                continue
            if not self._add_keys(segment, transactions):
                break
            offsets.latest_offset = following - 1  # no record lies in between
        offsets.finish()

    def _add_keys(self, segment: Segment, transactions: CleanedTransactions) -> bool:
        """Collect the keys of a segment. False when the memory for keys ran out before its end."""
        offsets, stats, first_dirty = self.offsets, self.stats, self._job.first_dirty_offset
        position = segment.offset_index().position_before(first_dirty)
        stats.map_bytes_read += segment.size - position
        for found in self._read(segment, position, check=True):
            for header, batch in found:
                last_offset = header.base_offset + header.last_offset_delta
                if last_offset < first_dirty:
                    continue
                if offsets.is_full:
                    return False
                stats.map_records_read += header.record_count
                if header.attributes & CONTROL_FLAG:
                    transactions.visit_control(header, batch)
                elif not header.attributes & TRANSACTIONAL_FLAG or not transactions.visit_data(header):
                    try:
                        offsets.add(header, batch)
                    except UNREADABLE as error:
                        raise UnreadableBatch(header, error) from error
                offsets.latest_offset = last_offset
        return True

    def _read(self, segment: Segment, position: int, *, check: bool) -> Iterator[Batches]:
        for found in read_batches(segment, position, self._job.io_buffer_bytes, check=check):
            self._throttle.spend(sum(len(batch) for _, batch in found))
            yield found

    # Copying what survives

    def _clean_group(
        self, old: list[Segment], batch_filter: BatchFilter, transactions: CleanedTransactions
    ) -> Segment:
        cleaned = Segment(self._context, self._job.directory, old[0].base_offset, suffix=names.CLEANED)
        output = _Output(cleaned, self._job, self._throttle)
        for segment in old:
            # Checksums of the dirty part were checked when its keys were read.
            check = segment.base_offset < self._job.first_dirty_offset
            self.stats.bytes_read += segment.size
            for found in self._read(segment, 0, check=check):
                for header, batch in found:
                    try:
                        kept = batch_filter(header, batch)
                    except UNREADABLE as error:
                        raise UnreadableBatch(header, error) from error
                    if kept is not None:
                        output.add(header if kept is batch else BatchHeader(kept), kept)
        output.finish(transactions.pop_kept())
        cleaned.sync()
        self.stats.bytes_written += cleaned.size
        self._keep_age(old[-1], cleaned)
        self._context.files.close(cleaned)
        for segment in old:
            self._context.files.close(segment)
            self._context.indexes.forget(segment)
        return cleaned

    def _keep_age(self, old: Segment, cleaned: Segment) -> None:
        """Give the cleaned file the age of the old one: without timestamps, retention goes by file age."""
        disk = self._context.disk
        modified_ms = disk.modified_ms(old.path)
        for kind in (names.LOG, names.OFFSET_INDEX, names.TIME_INDEX):
            disk.set_modified_ms(cleaned.path_of(kind), modified_ms)

    def _aborted_transactions(self) -> list[AbortedTransaction]:
        """Collect them from all segments: a transaction aborted in the last may have begun in the first."""
        return [entry for segment in self._segments for entry in segment.transactions().entries]

    def _sizes(self, segment: Segment) -> SegmentSizes:
        return SegmentSizes(
            segment.base_offset,
            segment.size,
            len(segment.offset_index().data),
            len(segment.time_index().data),
        )


class _Output:
    """The files of a cleaned segment, written in large pieces."""

    __slots__ = ("_buffers", "_bytes", "_extents", "_job", "_segment", "_throttle", "_writer")

    def __init__(self, segment: Segment, job: CleaningJob, throttle: Throttle) -> None:
        self._segment = segment
        self._job = job
        self._throttle = throttle
        self._writer = SegmentWriter.create(segment)
        segment.forget_transactions()
        self._buffers: list[Buffer] = []
        self._extents: list[Extent] = []
        self._bytes = 0

    def add(self, header: BatchHeader, batch: Buffer) -> None:
        self._extents.append((header.last_offset, header.max_timestamp, header.size))
        # A view of a small batch would keep the whole chunk that was read in memory.
        self._buffers.append(bytes(batch) if len(batch) < COPIED_BYTES_MAX else batch)
        self._bytes += len(batch)
        if self._bytes >= self._job.io_buffer_bytes or len(self._buffers) >= WRITTEN_BUFFERS_MAX:
            self._write()

    def _write(self) -> None:
        self._throttle.spend(self._bytes)
        segment = self._segment
        file = segment.open()
        views = [memoryview(each) for each in self._buffers]
        finish_write(segment.context.disk, file.descriptor, views, segment.size, 0)
        self._writer.add(self._extents, self._job.index_interval_bytes)
        self._buffers, self._extents, self._bytes = [], [], 0

    def finish(self, aborted: list[AbortedTransaction]) -> None:
        if self._buffers:
            self._write()
        self._writer.finish()
        if aborted:
            path = self._segment.path_of(names.TRANSACTION_INDEX)
            self._segment.context.disk.create(path, b"".join(map(encode, aborted)), sync=True)
