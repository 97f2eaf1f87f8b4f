"""Pages of a store: decoded objects by key, loaded when first touched, written back once.

In: a backend, two functions that decode and encode a page. Out: objects to change in place. The caller says
what it has changed. Does not know: what the objects are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from barnabas.plans.stores import StateBackend

P = TypeVar("P")
KEYED, SEGMENT, META = b"k", b"t", b"m"
_ENTRY = struct.Struct(">qI")
_NUMBER = struct.Struct(">q")


class Pages(Generic[P]):
    """Pages by the bytes of a record's key. An empty page is deleted."""

    def __init__(
        self,
        backend: StateBackend,
        store: str,
        decode: Callable[[bytes], P],
        encode: Callable[[P], bytes],
        empty: Callable[[], P],
    ) -> None:
        self._backend, self._store = backend, store
        self._decode, self._encode, self._empty = decode, encode, empty
        self.loaded: dict[bytes, P] = {}
        self.dirty: dict[bytes, None] = {}

    def of(self, key: bytes) -> P:
        found = self.loaded.get(key)
        if found is None:
            stored = self._backend.get(self._store, KEYED + key)
            found = self.loaded[key] = self._empty() if stored is None else self._decode(stored)
        return found

    def touch(self, key: bytes) -> P:
        """The page of a key, to be written back."""
        self.dirty[key] = None
        return self.of(key)

    def keys(self, first: bytes | None = None, last: bytes | None = None) -> Iterator[bytes]:
        """Keys with a page, in order; `last` is not included."""
        upper = SEGMENT if last is None else KEYED + last
        stored = self._backend.range(self._store, KEYED + (first or b""), upper)
        found = {key[1:] for key, _ in stored}
        found |= {
            key for key in self.loaded if (first is None or key >= first) and (last is None or key < last)
        }
        return iter(sorted(key for key in found if self.of(key)))

    def flush(self) -> None:
        for key in self.dirty:
            page = self.loaded[key]
            if page:
                self._backend.put(self._store, KEYED + key, self._encode(page))
            else:
                self._backend.delete(self._store, KEYED + key)
        self.dirty.clear()

    def forget(self) -> None:
        self.loaded.clear()


class TimeIndex:
    """Entries of bytes by time, in segments; only segments that are looked at are loaded."""

    def __init__(self, backend: StateBackend, store: str, segment_ms: int) -> None:
        self._backend, self._store = backend, store
        self._segment_ms = max(1, segment_ms)
        self._segments: dict[int, dict[tuple[int, bytes], None] | None] = {}
        self._dirty: set[int] = set()
        self._meta_dirty = False
        self._load_meta()

    def _load_meta(self) -> None:
        stored = self._backend.get(self._store, META)
        numbers = struct.unpack(f">{len(stored) // 8}q", stored) if stored else ()
        self._segments = dict.fromkeys(numbers)

    def _segment(self, number: int) -> dict[tuple[int, bytes], None]:
        found = self._segments.get(number)
        if found is None:
            found = {}
            if number in self._segments:
                stored = self._backend.get(self._store, SEGMENT + _NUMBER.pack(number)) or b""
                at = 0
                while at < len(stored):
                    time, size = _ENTRY.unpack_from(stored, at)
                    at += _ENTRY.size + size
                    found[time, stored[at - size : at]] = None
            else:
                self._meta_dirty = True
            self._segments[number] = found
        return found

    def add(self, time: int, entry: bytes) -> None:
        number = time // self._segment_ms
        segment = self._segment(number)
        if (time, entry) not in segment:
            segment[time, entry] = None
            self._dirty.add(number)

    def add_many(self, entries: Iterable[tuple[int, bytes]]) -> None:
        by_segment: dict[int, dict[tuple[int, bytes], None]] = {}
        size = self._segment_ms
        for entry in entries:
            number = entry[0] // size
            some = by_segment.get(number)
            if some is None:
                some = by_segment[number] = {}
            some[entry] = None
        for number, some in by_segment.items():
            self._segment(number).update(some)
            self._dirty.add(number)

    def pop_before(self, limit: int) -> list[tuple[int, bytes]]:
        """Take out the entries with a time below the limit."""
        found: list[tuple[int, bytes]] = []
        last = limit // self._segment_ms
        for number in sorted(number for number in self._segments if number <= last):
            segment = self._segment(number)
            due = list(segment) if number < last else [entry for entry in segment if entry[0] < limit]
            found += due
            if len(due) == len(segment):
                self._drop(number)
            elif due:
                for entry in due:
                    del segment[entry]
                self._dirty.add(number)
        return found

    def discard(self, time: int, entry: bytes) -> None:
        number = time // self._segment_ms
        if number not in self._segments:
            return
        segment = self._segment(number)
        if (time, entry) in segment:
            del segment[time, entry]
            self._dirty.add(number)
            if not segment:
                self._drop(number)

    def _drop(self, number: int) -> None:
        del self._segments[number]
        self._dirty.discard(number)
        self._meta_dirty = True
        self._backend.delete(self._store, SEGMENT + _NUMBER.pack(number))

    def between(self, low: int, high: int) -> list[tuple[int, bytes]]:
        """Entries with low <= time <= high, by time, then by bytes."""
        first, last = low // self._segment_ms, high // self._segment_ms
        found: list[tuple[int, bytes]] = []
        for number in sorted(number for number in self._segments if first <= number <= last):
            found += sorted(entry for entry in self._segment(number) if low <= entry[0] <= high)
        return found

    def ordered(self) -> Iterator[tuple[int, bytes]]:
        """All entries by time; segments are loaded as the caller gets to them."""
        for number in sorted(self._segments):
            yield from sorted(self._segment(number))

    def first(self) -> tuple[int, bytes] | None:
        return next(self.ordered(), None)

    def flush(self) -> None:
        for number in self._dirty:
            page = b"".join(
                _ENTRY.pack(time, len(entry)) + entry for time, entry in self._segments[number] or ()
            )
            self._backend.put(self._store, SEGMENT + _NUMBER.pack(number), page)
        self._dirty.clear()
        if self._meta_dirty:
            numbers = sorted(self._segments)
            self._backend.put(self._store, META, struct.pack(f">{len(numbers)}q", *numbers))
            self._meta_dirty = False

    def forget(self) -> None:
        self._load_meta()


class Chunks:
    """Writes and reads entries of numbers and bytes one after the other."""

    @staticmethod
    def write(shape: struct.Struct, entries: Iterator[tuple[Any, ...]]) -> bytes:
        """Each entry: the numbers of `shape`, then bytes or None."""
        parts = []
        for *numbers, data in entries:
            parts.append(shape.pack(*numbers))
            parts.append(struct.pack(">i", -1 if data is None else len(data)))
            if data is not None:
                parts.append(data)
        return b"".join(parts)

    @staticmethod
    def read(shape: struct.Struct, page: bytes) -> Iterator[tuple[Any, ...]]:
        at = 0
        while at < len(page):
            numbers = shape.unpack_from(page, at)
            at += shape.size
            (size,) = struct.unpack_from(">i", page, at)
            at += 4
            if size < 0:
                yield (*numbers, None)
            else:
                yield (*numbers, page[at : at + size])
                at += size
