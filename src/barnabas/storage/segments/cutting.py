"""Truncation of one segment: first its files, which may run in a thread, then its objects in memory.

In: a segment without concurrent appends, an offset. Out: files that end before the batch that holds the
offset, and a `SegmentCut` with the new indexes, size and largest timestamp. Objects that readers in other
threads may hold are not changed; `install` replaces them.
Does not know: the log, other segments, producers.
"""

from dataclasses import dataclass

from barnabas.runtime.disk import CREATE, FILE_MODE
from barnabas.storage.files import names
from barnabas.storage.segments.index import OffsetIndex, TimeIndex
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.segment_writer import SegmentWriter
from barnabas.storage.segments.transaction_index import TransactionIndex


@dataclass(frozen=True, slots=True)
class SegmentCut:
    """The new state of a truncated segment. The thread that appends installs it."""

    segment: Segment
    offset: int
    size: int
    offset_index: OffsetIndex
    time_index: TimeIndex
    transactions: TransactionIndex
    stored_bytes: tuple[int, int]  # sizes of the offset index file and the time index file
    largest: tuple[int, int]  # timestamp, and the last offset of its batch

    def install(self) -> None:
        """Give the segment its new state; it can be appended to again."""
        segment = self.segment
        segment.size = self.size
        segment.replace_transactions(self.transactions)
        writer = SegmentWriter(segment, self.offset_index, self.time_index, self.offset)
        writer.resume_after_cut(self.stored_bytes, self.largest)


def cut_segment(segment: Segment, offset: int) -> SegmentCut:
    """Remove the batches that end at or after `offset` from the files."""
    found = segment.find(offset)
    size = segment.size if found is None else found[0]
    base_offset, writer = segment.base_offset, segment.writer
    offset_index = OffsetIndex(base_offset, bytes(segment.offset_index().data))
    time_index = TimeIndex(base_offset, bytes(segment.time_index().data))
    stored = writer.stored_bytes if writer is not None else (len(offset_index.data), len(time_index.data))
    offset_index.truncate(offset)
    time_index.truncate(offset)
    # Index files first: an index must not point to bytes that do not exist.
    stored_bytes = (
        _cut_file(segment, names.OFFSET_INDEX, len(offset_index.data), stored[0]),
        _cut_file(segment, names.TIME_INDEX, len(time_index.data), stored[1]),
    )
    transactions = TransactionIndex(bytes(segment.transactions().data))
    transactions.truncate(segment.context.disk, segment.path_of(names.TRANSACTION_INDEX), offset)
    largest = time_index.last_entry()
    for _, header in segment.headers(offset_index.position_before(largest[1]), size):
        if header.max_timestamp > largest[0]:
            largest = header.max_timestamp, header.last_offset
    if found is not None:  # the last step: before it, all of this can be repeated
        segment.resize(size)
    return SegmentCut(segment, offset, size, offset_index, time_index, transactions, stored_bytes, largest)


def _cut_file(segment: Segment, kind: str, length: int, stored: int) -> int:
    if stored <= length:
        return stored
    disk = segment.context.disk
    descriptor = disk.open(segment.path_of(kind), CREATE, FILE_MODE)
    try:
        disk.ftruncate(descriptor, length)
    finally:
        disk.close(descriptor)
    return length
