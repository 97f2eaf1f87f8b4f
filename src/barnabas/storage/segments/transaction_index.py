"""The transaction index of a segment: the aborted transactions that end in it.

In: one entry for each abort marker. Out: the transactions that a read-committed consumer has to skip. An
entry has 34 bytes and is written to the file at once. The file exists only if a transaction was aborted.
Does not know: producers, open transactions, how the last stable offset is computed.
"""

import struct
from bisect import bisect_left
from typing import NamedTuple

from barnabas.runtime.disk import CREATE, FILE_MODE, Disk

ENTRY_BYTES = 34
VERSION = 0
LAST_OFFSET_AT = 18  # in an entry

_entry = struct.Struct(">hqqqq")
_unpack = _entry.unpack_from
_unpack_offset = struct.Struct(">q").unpack_from


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int  # of the marker
    last_stable_offset: int  # after the marker was written


class TransactionIndex:
    """The entries of one file, kept as bytes, since there may be very many."""

    __slots__ = ("data",)

    def __init__(self, data: bytes = b"") -> None:
        """Use the content of a file; ValueError for an unknown version."""
        self.data = bytearray(data[: len(data) - len(data) % ENTRY_BYTES])
        if any(self.data[::ENTRY_BYTES]) or any(self.data[1::ENTRY_BYTES]):
            decode(data)  # its error names the entry

    def __len__(self) -> int:
        return len(self.data) // ENTRY_BYTES

    @property
    def entries(self) -> list[AbortedTransaction]:
        return decode(self.data)

    def append(self, disk: Disk, path: str, entry: AbortedTransaction) -> None:
        at = len(self.data)
        if at and entry.last_offset <= self._last_offset(len(self) - 1):
            return  # already in the index: the marker is replayed
        added = encode(entry)
        descriptor = disk.open(path, CREATE, FILE_MODE)
        try:
            disk.ftruncate(descriptor, at)
            disk.pwritev(descriptor, [added], at)
        finally:
            disk.close(descriptor)
        self.data += added

    def truncate(self, disk: Disk, path: str, offset: int) -> None:
        """Keep the transactions that ended before `offset`."""
        kept = self._first_from(offset) * ENTRY_BYTES
        if kept < len(self.data):
            del self.data[kept:]
            disk.create(path, bytes(self.data))

    def collect(self, fetch_offset: int, upper_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """The transactions with records in [fetch_offset, upper_offset), and True if later segments hold no
        more. Entries are in the order of their markers, so a search skips those that end before."""
        found = []
        data = self.data
        for position in range(self._first_from(fetch_offset) * ENTRY_BYTES, len(data), ENTRY_BYTES):
            _, producer_id, first_offset, last_offset, last_stable_offset = _unpack(data, position)
            if first_offset < upper_offset:
                found.append(AbortedTransaction(producer_id, first_offset, last_offset, last_stable_offset))
            if last_stable_offset >= upper_offset:
                return found, True
        return found, False

    def _first_from(self, offset: int) -> int:
        """Number of the first entry whose marker is at `offset` or later."""
        return bisect_left(range(len(self)), offset, key=self._last_offset)

    def _last_offset(self, index: int) -> int:
        offset: int = _unpack_offset(self.data, index * ENTRY_BYTES + LAST_OFFSET_AT)[0]
        return offset


def encode(entry: AbortedTransaction) -> bytes:
    return _entry.pack(VERSION, *entry)


def decode(data: bytes | bytearray) -> list[AbortedTransaction]:
    """Decode all whole entries; ValueError for an unknown version."""
    entries = []
    for position in range(0, len(data) - ENTRY_BYTES + 1, ENTRY_BYTES):
        version, *fields = _entry.unpack_from(data, position)
        if version != VERSION:
            raise ValueError(
                f"aborted transaction at byte {position}: version {version} is not supported, only {VERSION}"
            )
        entries.append(AbortedTransaction(*fields))
    return entries
