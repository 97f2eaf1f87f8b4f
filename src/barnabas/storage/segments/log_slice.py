"""A slice of one segment file: whole batches, sent to clients unchanged.

In: an open file, position and length. Out: the bytes, or the arguments for `os.sendfile`. A slice keeps its
file open, so rolling, deleting or compacting the segment does not disturb it.
Does not know: what the bytes mean.
"""

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.disk import REAL_DISK, Disk
from barnabas.storage.files.open_files import OpenFile


class LogSlice:
    """`next_offset` is larger than the offset of every record in the slice. `hot`: the bytes are very likely
    in the page cache, so that reading them on the event loop does not wait for the disk."""

    __slots__ = ("_disk", "file", "hot", "length", "next_offset", "position", "start_offset")

    def __init__(
        self,
        file: OpenFile | None,
        position: int,
        length: int,
        start_offset: int,
        next_offset: int,
        hot: bool = True,
        disk: Disk = REAL_DISK,
    ) -> None:
        self.file = file
        self.position = position
        self.length = length
        self.start_offset = start_offset
        self.next_offset = next_offset
        self.hot = hot
        self._disk = disk

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"LogSlice(offset {self.start_offset}, {self.length} bytes at {self.position})"

    def fileno(self) -> int:
        if self.file is None:
            raise ValueError("an empty slice has no file")
        return self.file.descriptor

    def read(self) -> bytes:
        """Read all bytes of the slice."""
        if self.file is None:
            return b""
        data = self._disk.pread(self.file.descriptor, self.length, self.position)
        return data if len(data) == self.length else self._read_rest(data)

    def is_cached(self, start: int, count: int) -> bool:
        """Whether these bytes are in the page cache. Checks the last one only, since the kernel reads ahead.
        A hot slice counts as cached."""
        return self.hot or self.is_resident(start, count)

    def is_resident(self, start: int, count: int) -> bool:
        """Like `is_cached`, but checks hot slices too: a slice that waited long may not be cached any
        more."""
        if self.file is None:
            return True
        last = min(start + count, self.length) - 1
        return self._disk.is_cached(self.file.descriptor, self.position + last)

    def read_part(self, start: int, count: int) -> bytes:
        """Read at most `count` bytes from `start` on."""
        if self.file is None:
            return b""
        count = min(count, self.length - start)
        return self._disk.pread(self.file.descriptor, count, self.position + start)

    def _read_rest(self, data: bytes) -> bytes:
        descriptor = self.fileno()
        parts, total = [data], len(data)
        while total < self.length:
            part = self._disk.pread(descriptor, self.length - total, self.position + total)
            if not part:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"the file ends {self.length - total} bytes early: it was truncated while it was read",
                )
            parts.append(part)
            total += len(part)
        return b"".join(parts)
