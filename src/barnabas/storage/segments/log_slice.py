"""A slice of one segment file: whole batches, sent to clients unchanged.

In: an open file, position and length. Out: the bytes, or the arguments for `os.sendfile` if the file is not
encrypted. A slice keeps its file open, so rolling, deleting or compacting the segment does not disturb it.
Does not know: what the bytes mean.
"""

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.disk import REAL_DISK, Disk
from barnabas.storage.files.open_files import OpenFile
from barnabas.storage.segments.segment import CorruptLog


class LogSlice:
    """`next_offset` is above the offset of every record in the slice. `likely_cached` is the log's guess from
    when the slice was made: its bytes are very likely in the page cache, so the event loop may read them."""

    __slots__ = ("_disk", "file", "length", "likely_cached", "next_offset", "position", "start_offset")

    def __init__(
        self,
        file: OpenFile | None,
        position: int,
        length: int,
        start_offset: int,
        next_offset: int,
        likely_cached: bool = True,
        disk: Disk = REAL_DISK,
    ) -> None:
        self.file = file
        self.position = position
        self.length = length
        self.start_offset = start_offset
        self.next_offset = next_offset
        self.likely_cached = likely_cached
        self._disk = disk

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"LogSlice(offset {self.start_offset}, {self.length} bytes at {self.position})"

    def after(self, count: int) -> "LogSlice":
        """The slice without its first bytes."""
        return LogSlice(
            self.file,
            self.position + count,
            self.length - count,
            self.start_offset,
            self.next_offset,
            self.likely_cached,
            self._disk,
        )

    def fileno(self) -> int:
        if self.file is None:
            raise ValueError("an empty slice has no file")
        return self.file.descriptor

    @property
    def is_plain(self) -> bool:
        """Whether the file holds the bytes as they are; if not, they can only be read."""
        disk = self._disk
        return not disk.is_encrypting or self.file is None or disk.is_plain(self.file.descriptor)

    def read(self) -> bytes:
        """Read all bytes of the slice. CORRUPT_MESSAGE if an encrypted file is damaged."""
        if self.file is None:
            return b""
        try:
            data = self._disk.pread(self.file.descriptor, self.length, self.position)
        except CorruptLog as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
        return data if len(data) == self.length else self._read_rest(data)

    def can_read_without_disk(self, start: int, count: int) -> bool:
        """Whether the event loop may read these bytes: they are likely cached, or the operating system says
        that they are."""
        return self.likely_cached or self.is_cached(start, count)

    def is_cached(self, start: int, count: int) -> bool:
        """Ask the operating system whether the last of these bytes is in the page cache: it reads ahead. For
        a slice that has waited long: its guess is out of date."""
        if self.file is None:
            return True
        last = min(start + count, self.length) - 1
        return self._disk.is_cached(self.file.descriptor, self.position + last)

    def read_part(self, start: int, count: int) -> bytes:
        """Read at most `count` bytes from `start` on. CORRUPT_MESSAGE if an encrypted file is damaged."""
        if self.file is None:
            return b""
        count = min(count, self.length - start)
        try:
            return self._disk.pread(self.file.descriptor, count, self.position + start)
        except CorruptLog as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error

    def _read_rest(self, data: bytes) -> bytes:
        parts, total = [data], len(data)
        while total < self.length:
            part = self.read_part(total, self.length - total)
            if not part:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"the file ends {self.length - total} bytes early: it was truncated while it was read",
                )
            parts.append(part)
            total += len(part)
        return b"".join(parts)
