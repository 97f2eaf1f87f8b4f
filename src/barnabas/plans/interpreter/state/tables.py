"""Stores of tables and processors: a value with its timestamp, or the versions of one, by key.

In: keys in bytes, Python values. Out: the same; `flush` writes pages and gives the changes for the changelog.
Does not know: the operators.
"""

from __future__ import annotations

import heapq
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

from barnabas.plans.interpreter.state.pages import AFTER_KEYED, KEYED, Chunks
from barnabas.plans.serdes import FromBytes, ToBytes
from barnabas.plans.stores import StateBackend, StoreSpec

_TIME = struct.Struct(">q")
ChangeRecord = tuple[bytes, bytes | None, int]  # key, value, timestamp: a record of the changelog
Row = tuple[Any, int]
_UNREAD: Any = object()


class TableState:
    """A value with its timestamp by key: Kafka's timestamped key-value store."""

    def __init__(self, spec: StoreSpec, backend: StateBackend, write: ToBytes, read: FromBytes) -> None:
        self.spec, self._backend, self._write, self._read = spec, backend, write, read
        self._rows: dict[bytes, Row | None] = {}
        self._dirty: dict[bytes, int] = {}
        self.revision = 0  # of what is in the store, for copies of it

    def get(self, key: bytes) -> Row | None:
        row = self._rows.get(key, _UNREAD)
        if row is _UNREAD:
            page = self._backend.get(self.spec.name, KEYED + key)
            row = None if page is None else (self._read(page[8:]), _TIME.unpack_from(page)[0])
            self._rows[key] = row
        return row  # type: ignore[no-any-return]

    def get_many(self, keys: Sequence[bytes]) -> list[Row | None]:
        """Rows in the order of their keys; pages that are not at hand are read together."""
        missing = [key for key in keys if key not in self._rows]
        pages = self._backend.get_many(self.spec.name, [KEYED + key for key in missing])
        for key, page in zip(missing, pages, strict=True):
            self._rows[key] = None if page is None else (self._read(page[8:]), _TIME.unpack_from(page)[0])
        return [self._rows[key] for key in keys]

    def put(self, key: bytes, value: Any, timestamp: int) -> None:
        """Store a value; None deletes the key."""
        self.revision += 1
        self._rows[key] = None if value is None else (value, timestamp)
        self._dirty[key] = timestamp

    def range(self, first: bytes | None, last: bytes | None) -> Iterator[tuple[bytes, Row]]:
        """Rows in the order of their keys' bytes, `last` not included; read as the caller gets to them."""
        upper = AFTER_KEYED if last is None else KEYED + last
        some = self._backend.range(self.spec.name, KEYED + (first or b""), upper)
        stored = ((key[1:], page) for key, page in some)
        unwritten = sorted(
            (key, b"")
            for key in self._dirty
            if (first is None or key >= first) and (last is None or key < last)
        )
        before = None
        for key, page in heapq.merge(stored, unwritten, key=itemgetter(0)):
            if key == before:
                continue
            before = key
            row = self._rows.get(key, _UNREAD)
            if row is _UNREAD:
                row = (self._read(page[8:]), _TIME.unpack_from(page)[0])
            if row is not None:
                yield key, row

    def flush(self) -> list[ChangeRecord]:
        changes: list[ChangeRecord] = []
        for key, timestamp in self._dirty.items():
            row = self._rows[key]
            if row is None:
                self._backend.delete(self.spec.name, KEYED + key)
                changes.append((key, None, timestamp))
            else:
                data = self._write(row[0])
                self._backend.put(self.spec.name, KEYED + key, _TIME.pack(row[1]) + data)
                changes.append((key, data, row[1]))
        self._dirty.clear()
        return changes

    def forget(self) -> None:
        self._rows.clear()

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Take over a record of the changelog, as it is."""
        self._rows.pop(key, None)
        if value is None:
            self._backend.delete(self.spec.name, KEYED + key)
        else:
            self._backend.put(self.spec.name, KEYED + key, _TIME.pack(timestamp) + value)


class VersionedState:
    """The versions of each key by time, `history_ms` back from the newest time that the store has seen."""

    def __init__(self, spec: StoreSpec, backend: StateBackend, write: ToBytes, read: FromBytes) -> None:
        self.spec, self._backend, self._write, self._read = spec, backend, write, read
        self._pages: dict[bytes, list[tuple[int, Any]]] = {}
        self._changes: dict[tuple[bytes, int], Any] = {}
        stored = backend.get(spec.name, b"m")
        self.observed_time = _TIME.unpack(stored)[0] if stored else -1

    def _page(self, key: bytes) -> list[tuple[int, Any]]:
        page = self._pages.get(key)
        if page is None:
            stored = self._backend.get(self.spec.name, KEYED + key) or b""
            page = self._pages[key] = [
                (time, None if data is None else self._read(data))
                for time, data in Chunks.read(_TIME, stored)
            ]
        return page

    def put(self, key: bytes, value: Any, timestamp: int) -> bool:
        """Store a version. False where it is older than the history."""
        self.observed_time = max(self.observed_time, timestamp)
        if timestamp < self.observed_time - self.spec.history_ms:
            return False
        page = self._page(key)
        at = bisect_right(page, timestamp, key=lambda version: version[0])
        if at and page[at - 1][0] == timestamp:
            page[at - 1] = (timestamp, value)
        else:
            page.insert(at, (timestamp, value))
        # A version is needed as long as it was valid at some time of the history.
        limit = self.observed_time - self.spec.history_ms
        while len(page) > 1 and page[1][0] <= limit:
            page.pop(0)
        self._changes[key, timestamp] = value
        return True

    def get(self, key: bytes) -> Row | None:
        """The newest version."""
        page = self._page(key)
        return (page[-1][1], page[-1][0]) if page and page[-1][1] is not None else None

    def newest_time(self, key: bytes) -> int | None:
        """The time of the newest version, a deletion too."""
        page = self._page(key)
        return page[-1][0] if page else None

    def as_of(self, key: bytes, time: int) -> Row | None:
        """The version that was valid at a time; None where that is older than the history."""
        page = self._page(key)
        at = bisect_right(page, time, key=lambda version: version[0])
        if not at or (at < len(page) and time < self.observed_time - self.spec.history_ms):
            return None
        version = page[at - 1]
        return None if version[1] is None else (version[1], version[0])

    def range(self, first: bytes | None, last: bytes | None) -> Iterator[tuple[bytes, Row]]:
        upper = last if last is None else KEYED + last
        stored = self._backend.range(self.spec.name, KEYED + (first or b""), upper)
        keys = {key[1:] for key, _ in stored if key[:1] == KEYED}
        keys |= {k for k in self._pages if (first is None or k >= first) and (last is None or k < last)}
        for key in sorted(keys):
            row = self.get(key)
            if row is not None:
                yield key, row

    def flush(self) -> list[ChangeRecord]:
        changes: list[ChangeRecord] = []
        for (key, time), value in self._changes.items():
            changes.append((key, None if value is None else self._write(value), time))
        for key in dict.fromkeys(key for key, _ in self._changes):
            versions = ((t, None if v is None else self._write(v)) for t, v in self._pages[key])
            self._backend.put(self.spec.name, KEYED + key, Chunks.write(_TIME, versions))
        if self._changes:
            self._backend.put(self.spec.name, b"m", _TIME.pack(self.observed_time))
        self._changes.clear()
        return changes

    def forget(self) -> None:
        self._pages.clear()

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Take over a record of the changelog; `flush` writes it."""
        self.put(key, None if value is None else self._read(value), timestamp)

    def versions(self, key: bytes, low: int, high: int) -> list[tuple[int, Any]]:
        """Versions that were valid at a time in [low, high], oldest first: (time, value)."""
        page = self._page(key)
        first = max(0, bisect_right(page, low, key=lambda version: version[0]) - 1)
        return [version for version in page[first:] if version[0] <= high]
