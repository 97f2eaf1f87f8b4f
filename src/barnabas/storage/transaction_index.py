"""Transaction index of a segment: the aborted transactions that end in it.

In: one entry an abort marker. Out: what a read-committed consumer has to skip. 34 bytes an entry, appended
to the file at once; the file exists only where a transaction was aborted.
Does not know: producers, open transactions, how the last stable offset is found.
"""

import struct
from bisect import bisect_left
from operator import attrgetter
from typing import NamedTuple

from barnabas.runtime.disk import CREATE, FILE_MODE, Disk

ENTRY_BYTES = 34
VERSION = 0

_entry = struct.Struct(">hqqqq")
_last_offset = attrgetter("last_offset")


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int  # of the marker
    last_stable_offset: int  # after the marker was written


class TransactionIndex:
    """The entries of one file, in memory."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[AbortedTransaction]) -> None:
        self.entries = entries

    @classmethod
    def decode(cls, data: bytes) -> "TransactionIndex":
        """What a file holds; ValueError for a version of the future."""
        return cls(decode(data))

    def append(self, disk: Disk, path: str, entry: AbortedTransaction) -> None:
        if self.entries and entry.last_offset <= self.entries[-1].last_offset:
            return  # seen before: a marker that is replayed
        descriptor = disk.open(path, CREATE, FILE_MODE)
        try:
            at = len(self.entries) * ENTRY_BYTES
            disk.ftruncate(descriptor, at)
            disk.pwritev(descriptor, [encode(entry)], at)
        finally:
            disk.close(descriptor)
        self.entries.append(entry)

    def truncate(self, disk: Disk, path: str, offset: int) -> None:
        """Keep the transactions that ended before `offset`."""
        kept = [entry for entry in self.entries if entry.last_offset < offset]
        if len(kept) == len(self.entries):
            return
        self.entries = kept
        disk.create(path, b"".join(map(encode, kept)))

    def collect(self, fetch_offset: int, upper_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """The transactions with records in [fetch_offset, upper_offset); True when later segments hold no
        more. Entries are in the order of their markers, so those that end before are skipped at once."""
        found = []
        entries = self.entries
        for index in range(bisect_left(entries, fetch_offset, key=_last_offset), len(entries)):
            entry = entries[index]
            if entry.first_offset < upper_offset:
                found.append(entry)
            if entry.last_stable_offset >= upper_offset:
                return found, True
        return found, False


def encode(entry: AbortedTransaction) -> bytes:
    return _entry.pack(VERSION, *entry)


def decode(data: bytes) -> list[AbortedTransaction]:
    """Every whole entry; ValueError for a version of the future."""
    entries = []
    for position in range(0, len(data) - ENTRY_BYTES + 1, ENTRY_BYTES):
        version, *fields = _entry.unpack_from(data, position)
        if version != VERSION:
            raise ValueError(
                f"aborted transaction of version {version} at byte {position}; known is {VERSION}"
            )
        entries.append(AbortedTransaction(*fields))
    return entries
