"""Offset index and time index of a segment, in the bytes of their files.

In: entries as batches are appended; offsets, positions and timestamps to look up. Out: where to start
reading. An index holds the bytes of its file (big-endian, 8 or 12 bytes for an entry), so loading and storing
need no conversion, and a search decodes only the entries that it compares.
Does not know: the log file, when an entry is due, where the bytes are stored.
"""

import struct
from bisect import bisect_left, bisect_right

OFFSET_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12
RELATIVE_OFFSET_MAX = 2**31 - 1
NO_TIMESTAMP = -1

_offset_entry = struct.Struct(">ii")
_time_entry = struct.Struct(">qi")
_unpack_int = struct.Struct(">i").unpack_from
_unpack_long = struct.Struct(">q").unpack_from


class CorruptIndex(Exception):
    """An index file that does not fit its segment and has to be rebuilt from the log file."""


class OffsetIndex:
    """Entries of last offset and position of a batch. Both grow from entry to entry."""

    __slots__ = ("base_offset", "data")

    def __init__(self, base_offset: int, data: bytes | bytearray = b"") -> None:
        self.base_offset = base_offset
        self.data = data if isinstance(data, bytearray) else bytearray(data)

    def __len__(self) -> int:
        return len(self.data) // OFFSET_ENTRY_BYTES

    def entry(self, slot: int) -> tuple[int, int]:
        relative, position = _offset_entry.unpack_from(self.data, slot * OFFSET_ENTRY_BYTES)
        return self.base_offset + relative, position

    def append(self, offset: int, position: int) -> None:
        self.data += _offset_entry.pack(offset - self.base_offset, position)

    def position_before(self, offset: int) -> int:
        """A position at or before the batch that holds `offset`."""
        data = self.data
        slot = bisect_right(
            range(len(data) // OFFSET_ENTRY_BYTES),
            offset - self.base_offset,
            key=lambda slot: _unpack_int(data, slot * OFFSET_ENTRY_BYTES)[0],
        )
        return self.entry(slot - 1)[1] if slot else 0

    def boundary_before(self, position: int) -> int:
        """The last known batch boundary at or before `position`."""
        slot = self._slot_from(position + 1)
        return self.entry(slot - 1)[1] if slot else 0

    def boundary_from(self, position: int) -> tuple[int, int] | None:
        """The first known batch at or after `position`: its last offset and where it begins."""
        slot = self._slot_from(position)
        return self.entry(slot) if slot < len(self) else None

    def truncate(self, offset: int) -> None:
        """Keep the entries of batches that end before `offset`."""
        data = self.data
        slot = bisect_left(
            range(len(data) // OFFSET_ENTRY_BYTES),
            offset - self.base_offset,
            key=lambda slot: _unpack_int(data, slot * OFFSET_ENTRY_BYTES)[0],
        )
        del data[slot * OFFSET_ENTRY_BYTES :]

    def check(self, log_bytes: int) -> None:
        """Raise `CorruptIndex` unless these can be the entries of a log file of that size."""
        if len(self.data) % OFFSET_ENTRY_BYTES:
            raise CorruptIndex(
                f"offset index of {len(self.data)} bytes, not a multiple of {OFFSET_ENTRY_BYTES}"
            )
        if self.data:
            offset, position = self.entry(len(self) - 1)
            if offset < self.base_offset or not 0 < position < log_bytes:
                raise CorruptIndex(
                    f"last entry of the offset index is offset {offset} at byte {position}, in a segment of "
                    f"{log_bytes} bytes from offset {self.base_offset}"
                )

    def _slot_from(self, position: int) -> int:
        data = self.data
        return bisect_left(
            range(len(data) // OFFSET_ENTRY_BYTES),
            position,
            key=lambda slot: _unpack_int(data, slot * OFFSET_ENTRY_BYTES + 4)[0],
        )


class TimeIndex:
    """Entries of the largest timestamp so far and the last offset of its batch. Both grow."""

    __slots__ = ("base_offset", "data", "last_timestamp")

    def __init__(self, base_offset: int, data: bytes | bytearray = b"") -> None:
        self.base_offset = base_offset
        self.data = data if isinstance(data, bytearray) else bytearray(data)
        self.last_timestamp = self.last_entry()[0]

    def __len__(self) -> int:
        return len(self.data) // TIME_ENTRY_BYTES

    def entry(self, slot: int) -> tuple[int, int]:
        timestamp, relative = _time_entry.unpack_from(self.data, slot * TIME_ENTRY_BYTES)
        return timestamp, self.base_offset + relative

    def last_entry(self) -> tuple[int, int]:
        return self.entry(len(self) - 1) if len(self) else (NO_TIMESTAMP, self.base_offset)

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry if the timestamp is larger than the last one."""
        if timestamp > self.last_timestamp:
            self.data += _time_entry.pack(timestamp, offset - self.base_offset)
            self.last_timestamp = timestamp

    def offset_before(self, timestamp: int) -> int:
        """An offset at or before the first record with a timestamp of at least `timestamp`."""
        data = self.data
        slot = bisect_right(
            range(len(data) // TIME_ENTRY_BYTES),
            timestamp,
            key=lambda slot: _unpack_long(data, slot * TIME_ENTRY_BYTES)[0],
        )
        return self.entry(slot - 1)[1] if slot else self.base_offset

    def truncate(self, offset: int) -> None:
        """Keep the entries whose offset is before `offset`."""
        data = self.data
        slot = bisect_left(
            range(len(data) // TIME_ENTRY_BYTES),
            offset - self.base_offset,
            key=lambda slot: _unpack_int(data, slot * TIME_ENTRY_BYTES + 8)[0],
        )
        del data[slot * TIME_ENTRY_BYTES :]
        self.last_timestamp = self.last_entry()[0]

    def check(self) -> None:
        if len(self.data) % TIME_ENTRY_BYTES:
            raise CorruptIndex(f"time index of {len(self.data)} bytes, not a multiple of {TIME_ENTRY_BYTES}")
        if self.data:
            timestamp, offset = self.entry(len(self) - 1)
            if timestamp < self.entry(0)[0] or offset < self.base_offset or timestamp < 0:
                raise CorruptIndex(
                    f"last entry of the time index is timestamp {timestamp} at offset {offset}"
                )
            if len(self) > 1 and timestamp == self.entry(0)[0]:
                raise CorruptIndex("the time index repeats one timestamp")
