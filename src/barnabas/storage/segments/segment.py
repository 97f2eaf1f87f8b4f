"""One segment of a log: a `.log` file with its offset, time and transaction index.

In: positions and offsets. Out: batch headers and positions of batches. The active segment has a
`SegmentWriter`, which holds its indexes. The others load theirs on demand into a cache that all logs share.
An idle segment needs a few dozen words of memory and no open file.
Does not know: other segments, producers, when to roll.
"""

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.records.batch import BATCH_OVERHEAD, LOG_OVERHEAD, BatchHeader
from barnabas.storage.files import names
from barnabas.storage.segments.index import NO_TIMESTAMP, OffsetIndex, TimeIndex
from barnabas.storage.segments.transaction_index import AbortedTransaction, TransactionIndex

if TYPE_CHECKING:
    from barnabas.storage.files.open_files import OpenFile
    from barnabas.storage.logs.context import LogContext
    from barnabas.storage.segments.segment_writer import SegmentWriter

SCAN_BYTES = 8192  # a little more than the default distance between two index entries
BATCH_LENGTH_MIN = BATCH_OVERHEAD - LOG_OVERHEAD
INDEX_INTERVAL_BYTES = 4096  # for rebuilt indexes; readers work with any interval

_extent = struct.Struct(">qi11xi").unpack_from  # base offset, length, last offset delta
_origin = struct.Struct(">qi31xq").unpack_from  # base offset, length, producer id


class CorruptLog(Exception):
    """Bytes in a log file that are not a valid batch."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path} at byte {position}: {reason}")
        self.position = position


class Segment:
    """`size` is the number of bytes of whole batches in the file."""

    __slots__ = (
        "_largest",
        "_transactions",
        "base_offset",
        "context",
        "directory",
        "file",
        "file_used",
        "size",
        "suffix",
        "writer",
    )

    def __init__(
        self, context: "LogContext", directory: str, base_offset: int, size: int = 0, suffix: str = ""
    ) -> None:
        self.context = context
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix
        self.size = size
        self.file: OpenFile | None = None
        self.file_used = False
        self.writer: SegmentWriter | None = None
        self._transactions: TransactionIndex | None = None
        self._largest: tuple[int, int] | None = None  # see `largest_timestamp`

    def __repr__(self) -> str:
        return f"Segment({self.path}, {self.size} bytes)"

    # Files

    @property
    def path(self) -> str:
        return f"{self.directory}/{self.base_offset:020d}.log{self.suffix}"

    def path_of(self, kind: str) -> str:
        return f"{self.directory}/{self.base_offset:020d}{kind}{self.suffix}"

    def open(self, *, is_writer: bool = False) -> "OpenFile":
        self.file_used = True
        return self.file or self.context.files.open(self, is_writer=is_writer)

    def resize(self, length: int) -> None:
        """Set the length of the log file: truncate it, or preallocate space."""
        file = self.open(is_writer=True)
        self.context.disk.ftruncate(file.descriptor, length)

    def rename_files(self, suffix: str) -> None:
        """Give all files another suffix (`.deleted`, `.swap`, or none). Readers are not disturbed."""
        with self.context.files.lock:
            for kind in names.SEGMENT_SUFFIXES:
                try:
                    self.context.disk.replace(
                        self.path_of(kind), f"{self.directory}/{self.base_offset:020d}{kind}{suffix}"
                    )
                except FileNotFoundError:
                    pass
            self.suffix = suffix

    def read_file(self, kind: str) -> bytes:
        """Read a whole index file, under its current name."""
        while True:
            directory, suffix = self.directory, self.suffix
            try:
                data = self.context.disk.read(self.path_of(kind))
            except FileNotFoundError:
                with self.context.files.lock:  # another thread may be renaming it
                    if (directory, suffix) == (self.directory, self.suffix):
                        raise
            else:
                # It was renamed meanwhile: the old name may belong to another segment now.
                if (directory, suffix) == (self.directory, self.suffix):
                    return data

    def delete_files(self) -> None:
        self.context.files.close(self)
        self.context.indexes.forget(self)
        with self.context.files.lock:
            for kind in names.SEGMENT_SUFFIXES:
                try:
                    self.context.disk.unlink(self.path_of(kind))
                except FileNotFoundError:
                    pass
            self.suffix = names.DELETED  # a late reader must not create new files: see `_replace_index`

    def sync(self) -> None:
        """Make the written batches durable. The index files of the active segment are not synced: they are
        rebuilt after a crash."""
        disk = self.context.disk
        complete = self.writer is None
        file = self.open(is_writer=True)
        disk.fsync(file.descriptor)
        if complete:
            disk.sync_file(self.path_of(names.OFFSET_INDEX))
            disk.sync_file(self.path_of(names.TIME_INDEX))
        if self._transactions is None or len(self._transactions):
            disk.sync_file(self.path_of(names.TRANSACTION_INDEX))

    # Reading

    def pread(self, length: int, position: int) -> bytes:
        file = self.open()  # keep a reference: another thread may evict the file meanwhile
        return self.context.disk.pread(file.descriptor, length, position)

    def headers(self, position: int = 0, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
        """Yield the headers of all batches from a batch boundary on. `CorruptLog` at the first invalid
        one."""
        end = self.size if end is None else end
        chunk, start = b"", position
        while position + BATCH_OVERHEAD <= end:
            if position + BATCH_OVERHEAD > start + len(chunk):
                chunk, start = self.pread(SCAN_BYTES, position), position
                if len(chunk) < BATCH_OVERHEAD:
                    return
            header = BatchHeader(chunk, position - start)
            if header.batch_length < BATCH_LENGTH_MIN:
                raise CorruptLog(self.path, position, f"batch of length {header.batch_length}")
            following = position + header.batch_length + LOG_OVERHEAD
            if following > end:
                return
            yield position, header
            position = following

    def producer_headers(self, position: int, end_offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """Yield the headers of batches below `end_offset` that have a producer id. Batches without one are
        skipped quickly, since they may be all of a segment."""
        end, chunk, start = self.size, b"", position
        while position + BATCH_OVERHEAD <= end:
            at = position - start
            if at + BATCH_OVERHEAD > len(chunk):
                chunk, start, at = self.pread(SCAN_BYTES, position), position, 0
                if len(chunk) < BATCH_OVERHEAD:
                    return
            base_offset, length, producer_id = _origin(chunk, at)
            if length < BATCH_LENGTH_MIN:
                raise CorruptLog(self.path, position, f"batch of length {length}")
            if base_offset >= end_offset or position + length + LOG_OVERHEAD > end:
                return
            if producer_id >= 0:
                yield position, BatchHeader(chunk, at)
            position += length + LOG_OVERHEAD

    def find(
        self, offset: int, position: int | None = None, end: int | None = None
    ) -> tuple[int, int] | None:
        """Position and size of the first batch that ends at or after `offset`; None if there is none."""
        if position is None:
            position = self.offset_index().position_before(offset)
        if end is None:
            end = self.size
        chunk, start = b"", position
        while position + BATCH_OVERHEAD <= end:
            if position + BATCH_OVERHEAD > start + len(chunk):
                chunk, start = self.pread(SCAN_BYTES, position), position
                if len(chunk) < BATCH_OVERHEAD:
                    return None
            base_offset, length, delta = _extent(chunk, position - start)
            if length < BATCH_LENGTH_MIN:
                raise CorruptLog(self.path, position, f"batch of length {length}")
            if base_offset + delta >= offset:
                return position, length + LOG_OVERHEAD
            position += length + LOG_OVERHEAD
        return None

    def next_offset(self) -> int:
        """The offset after the last batch, found by reading from the last index entry on."""
        following = self.base_offset
        for _, header in self.headers(self.offset_index().boundary_before(self.size)):
            following = header.next_offset
        return following

    def first_timestamp(self) -> int | None:
        """The largest timestamp of the first batch, from which the age of the segment counts."""
        for _, header in self.headers():
            return header.max_timestamp
        return None

    # Indexes

    def offset_index(self) -> OffsetIndex:
        writer = self.writer
        return writer.offset_index if writer is not None else self.context.indexes.offset_index(self)

    def time_index(self) -> TimeIndex:
        writer = self.writer
        return writer.time_index if writer is not None else self.context.indexes.time_index(self)

    @property
    def has_loaded_transactions(self) -> bool:
        return self._transactions is not None

    def transactions(self) -> TransactionIndex:
        if self._transactions is None:
            try:
                loaded = TransactionIndex(self.read_file(names.TRANSACTION_INDEX))
            except FileNotFoundError:
                loaded = TransactionIndex()
            with self.context.load_lock:
                # If two threads loaded it, keep the first object: the loop may have changed it since.
                if self._transactions is None:
                    self._transactions = loaded
        return self._transactions

    def add_transaction(self, transaction: AbortedTransaction) -> None:
        self.transactions().append(self.context.disk, self.path_of(names.TRANSACTION_INDEX), transaction)

    def replace_transactions(self, transactions: TransactionIndex) -> None:
        """Replace the transaction index after the file was truncated."""
        self._transactions = transactions

    def forget_transactions(self) -> None:
        """Use an empty transaction index, whatever the file holds."""
        self._transactions = TransactionIndex()
        try:
            self.context.disk.unlink(self.path_of(names.TRANSACTION_INDEX))
        except FileNotFoundError:
            pass

    def largest_timestamp(self) -> tuple[int, int]:
        """The largest timestamp and the last offset of its batch; (-1, base offset) without timestamps."""
        writer = self.writer
        if writer is not None:
            return writer.max_timestamp, writer.max_timestamp_offset
        largest = self._largest
        if largest is None:
            largest = self.time_index().last_entry()
            if self.writer is None:  # otherwise appends may change it
                self._largest = largest
        return largest

    def end_writing(self, largest: tuple[int, int] | None) -> None:
        """Detach the writer. Keep the largest timestamp in memory, since retention and lookups by time need
        it often."""
        self.writer, self._largest = None, largest

    def rebuild_indexes(self, interval_bytes: int = INDEX_INTERVAL_BYTES) -> tuple[OffsetIndex, TimeIndex]:
        """Rebuild both index files from the batch headers, with the entries that appends would have added."""
        offset_index, time_index = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        since, largest, largest_offset = 0, NO_TIMESTAMP, self.base_offset
        for position, header in self.headers():
            if header.max_timestamp > largest:
                largest, largest_offset = header.max_timestamp, header.last_offset
            if since > interval_bytes:
                offset_index.append(header.last_offset, position)
                time_index.append(largest, largest_offset)
                since = 0
            since += header.size
        time_index.append(largest, largest_offset)
        self.replace_indexes(offset_index, time_index)
        return offset_index, time_index

    def replace_indexes(self, offset_index: OffsetIndex, time_index: TimeIndex) -> None:
        self._replace_index(names.OFFSET_INDEX, offset_index.data)
        self._replace_index(names.TIME_INDEX, time_index.data)
        self.context.indexes.forget(self)
        self._largest = None

    def _replace_index(self, kind: str, data: bytearray) -> None:
        with self.context.files.lock:  # the owner may delete or rename the files
            if self.suffix == names.DELETED:
                return  # the segment was deleted after this reader had found it
            path = self.path_of(kind)
            try:
                if not data and self.context.disk.size(path) == 0:
                    return  # most partitions are small and have empty indexes: avoids a write after a crash
            except FileNotFoundError:
                pass
            self.context.disk.create(path, bytes(data))
