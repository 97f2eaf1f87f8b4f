"""The writer of an active segment: maintains its indexes while batches are appended.

In: extents of batches that are in the file. Out: the same index entries that Apache Kafka adds, and both
index files when the segment is closed. Until then the files may lack entries, but those in them are valid.
Does not know: the bytes of the batches, when to roll, producers.
"""

from array import array
from collections.abc import Iterable
from typing import TypeAlias

from barnabas.runtime.disk import CREATE, FILE_MODE
from barnabas.storage.files import names
from barnabas.storage.segments.index import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES, OffsetIndex, TimeIndex
from barnabas.storage.segments.segment import Segment

RECENT_BATCHES_MAX = 1024

Extent: TypeAlias = tuple[int, int, int]
"""The data of a batch that indexes need: last offset, largest timestamp, size in bytes."""


class SegmentWriter:
    """Attached to its segment while that is the active one.

    Remembers the exact positions of the last batches (`recent_next_offsets`, `recent_positions`: one item for
    each batch from `recent_start` on), so that fetches at the end of the log need no lookup in the file.
    """

    __slots__ = (
        "_stored_offset_bytes",
        "_stored_time_bytes",
        "bytes_since_index",
        "max_timestamp",
        "max_timestamp_offset",
        "offset_index",
        "recent_next_offsets",
        "recent_positions",
        "recent_start",
        "segment",
        "time_index",
    )

    def __init__(
        self, segment: Segment, offset_index: OffsetIndex, time_index: TimeIndex, end_offset: int
    ) -> None:
        """The indexes must equal their files. From now on only this writer changes them."""
        self.segment = segment
        self.offset_index = offset_index
        self.time_index = time_index
        self._stored_offset_bytes = len(offset_index.data)
        self._stored_time_bytes = len(time_index.data)
        self.bytes_since_index = 0
        self.max_timestamp, self.max_timestamp_offset = time_index.last_entry()
        self.recent_start = end_offset
        self.recent_next_offsets = array("q")
        self.recent_positions = array("q")
        segment.context.indexes.forget(segment)
        segment.writer = self

    @classmethod
    def create(cls, segment: Segment, preallocate_bytes: int = 0) -> "SegmentWriter":
        """Create empty files. Existing files of these names are overwritten."""
        disk = segment.context.disk
        disk.create(segment.path)
        disk.create(segment.path_of(names.OFFSET_INDEX))
        disk.create(segment.path_of(names.TIME_INDEX))
        if preallocate_bytes:
            segment.resize(preallocate_bytes)
        return cls(
            segment, OffsetIndex(segment.base_offset), TimeIndex(segment.base_offset), segment.base_offset
        )

    @classmethod
    def resume(cls, segment: Segment, end_offset: int) -> "SegmentWriter":
        """Continue an existing segment that ends at `end_offset`."""
        return segment.writer or cls(segment, segment.offset_index(), segment.time_index(), end_offset)

    def add(self, extents: Iterable[Extent], interval_bytes: int) -> None:
        """Add batches that were just written to the end of the file."""
        since = self.bytes_since_index
        position = self.segment.size
        add_next_offset, add_position = self.recent_next_offsets.append, self.recent_positions.append
        for last_offset, max_timestamp, size in extents:
            if max_timestamp > self.max_timestamp:
                self.max_timestamp = max_timestamp
                self.max_timestamp_offset = last_offset
            if since > interval_bytes:
                self.offset_index.append(last_offset, position)
                self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
                since = 0
            add_next_offset(last_offset + 1)
            add_position(position)
            position += size
            since += size
        self.bytes_since_index = since
        self.segment.size = position
        if len(self.recent_positions) > RECENT_BATCHES_MAX:
            dropped = len(self.recent_positions) - RECENT_BATCHES_MAX // 2
            self.recent_start = self.recent_next_offsets[dropped - 1]
            del self.recent_next_offsets[:dropped], self.recent_positions[:dropped]

    def room(self, index_bytes_max: int) -> int:
        """How many entries still fit into both indexes. One entry of the time index is reserved for
        `finish`."""
        return min(
            index_bytes_max // OFFSET_ENTRY_BYTES - len(self.offset_index),
            index_bytes_max // TIME_ENTRY_BYTES - 1 - len(self.time_index),
        )

    def store(self, *, final: bool = False) -> None:
        """Write new entries to the index files. `final` adds the entry for the largest timestamp."""
        if final:
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
        self._stored_offset_bytes = self._store(
            names.OFFSET_INDEX, self.offset_index.data, self._stored_offset_bytes
        )
        self._stored_time_bytes = self._store(names.TIME_INDEX, self.time_index.data, self._stored_time_bytes)

    def finish(self) -> None:
        """Complete the segment: write the final index entries and release preallocated space."""
        self.store(final=True)
        segment = self.segment
        disk = segment.context.disk
        if disk.size(segment.path) != segment.size:
            segment.resize(segment.size)
        disk.mark_complete(segment.path)
        segment.end_writing((self.max_timestamp, self.max_timestamp_offset))

    @property
    def stored_bytes(self) -> tuple[int, int]:
        """How many bytes of the offset index and the time index are in their files."""
        return self._stored_offset_bytes, self._stored_time_bytes

    def resume_after_cut(self, stored_bytes: tuple[int, int], largest: tuple[int, int]) -> None:
        """Continue a segment that was truncated: its index files may lack entries."""
        self._stored_offset_bytes, self._stored_time_bytes = stored_bytes
        self.max_timestamp, self.max_timestamp_offset = largest

    def _store(self, kind: str, data: bytearray, stored: int) -> int:
        if len(data) == stored:
            return stored
        disk = self.segment.context.disk
        descriptor = disk.open(self.segment.path_of(kind), CREATE, FILE_MODE)
        try:
            disk.ftruncate(descriptor, stored)
            while stored < len(data):
                stored += disk.pwritev(descriptor, [data[stored:]], stored)
        finally:
            disk.close(descriptor)
        return stored
