"""Cutting one segment short: its files first, in a thread if need be; what memory holds of it after.

In: a segment that nobody appends to, an offset. Out: files that end before the batch which holds the offset,
and a `SegmentCut`: indexes, size and largest timestamp as they are now. Objects that readers in other threads
may hold are not changed: `install` puts new ones in their place.
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
    """What is left of a segment; to be installed by the thread that appends."""

    segment: Segment
    offset: int
    size: int
    offset_index: OffsetIndex
    time_index: TimeIndex
    transactions: TransactionIndex
    stored_bytes: tuple[int, int]  # of both indexes that are in their files
    largest: tuple[int, int]  # timestamp, and the last offset of its batch

    def install(self) -> None:
        """The segment is what was left of it, and can be appended to."""
        segment = self.segment
        segment.size = self.size
        segment.replace_transactions(self.transactions)
        writer = SegmentWriter(segment, self.offset_index, self.time_index, self.offset)
        writer.resume_after_cut(self.stored_bytes, self.largest)


def cut_segment(segment: Segment, offset: int) -> SegmentCut:
    """Forget the batches that end at or after `offset`, in the files; the rest of them stays as it is."""
    found = segment.find(offset)
    size = segment.size if found is None else found[0]
    base_offset, writer = segment.base_offset, segment.writer
    offset_index = OffsetIndex(base_offset, bytes(segment.offset_index().data))
    time_index = TimeIndex(base_offset, bytes(segment.time_index().data))
    stored = writer.stored_bytes if writer is not None else (len(offset_index.data), len(time_index.data))
    offset_index.truncate(offset)
    time_index.truncate(offset)
    # Index files first: an index that names bytes which are gone would be a lie.
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
    if found is not None:  # the last step: until then all of this can be done again
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
