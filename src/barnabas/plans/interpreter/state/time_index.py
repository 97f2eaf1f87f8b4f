"""Entries of bytes by time, for stores of windows and for buffers.

In: a time and an entry. Out: the entries of a span, those that are due. Entries lie in *segments* of time,
each in pages of its own. New entries are appended to the last page of their segment, so a batch that only
adds reads and writes what it adds, not the segment. Does not know: what entries are.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator

from barnabas.plans.interpreter.state.pages import META, SEGMENT
from barnabas.plans.stores import StateBackend

PAGE_BYTES = 16 * 1024  # a page that has more is not extended any more
ENTRY = struct.Struct(">qI")  # time and size, then the bytes
_NUMBER = struct.Struct(">q")
_PLACE = struct.Struct(">qI")

Entry = tuple[int, bytes]


class _Segment:
    """`entries` has all of them once the segment is loaded, `fresh` and `packed` those without a page."""

    __slots__ = ("entries", "fresh", "is_rewritten", "packed", "pages")

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.entries: dict[Entry, None] | None = None
        self.fresh: dict[Entry, None] = {}
        self.packed: list[bytes] = []
        self.is_rewritten = False

    def add(self, entry: Entry) -> bool:
        """Whether it is new, as far as is known without loading."""
        if entry in (self.fresh if self.entries is None else self.entries):
            return False
        self.fresh[entry] = None
        if self.entries is not None:
            self.entries[entry] = None
        return True


class TimeIndex:
    """Only segments whose entries are asked for are loaded."""

    def __init__(self, backend: StateBackend, store: str, segment_ms: int) -> None:
        self._backend, self._store = backend, store
        self.segment_ms = max(1, segment_ms)
        self._segments: dict[int, _Segment] = {}
        self._dirty: dict[int, None] = {}
        self._meta_dirty = False
        self._load_meta()

    def _load_meta(self) -> None:
        """Load the index, which has the number of each segment as often as the segment has pages."""
        stored = self._backend.get(self._store, META)
        numbers = struct.unpack(f">{len(stored) // 8}q", stored) if stored else ()
        self._segments = {number: _Segment(pages) for number, pages in Counter(numbers).items()}
        self._dirty.clear()
        self._meta_dirty = False

    def _segment(self, number: int) -> _Segment:
        found = self._segments.get(number)
        if found is None:
            found = self._segments[number] = _Segment(0)
        return found

    def _loaded(self, number: int) -> dict[Entry, None]:
        segment = self._segments[number]
        if segment.entries is None:
            found = segment.entries = {}
            pages = [self._backend.get(self._store, _place(number, page)) for page in range(segment.pages)]
            for data in [*pages, *segment.packed]:
                found.update(dict.fromkeys(entries_of(data or b"")))
            found.update(segment.fresh)
        return segment.entries

    def add(self, time: int, entry: bytes) -> None:
        number = time // self.segment_ms
        if self._segment(number).add((time, entry)):
            self._dirty[number] = None

    def add_many(self, entries: Iterable[Entry]) -> None:
        for time, entry in entries:
            self.add(time, entry)

    def add_packed(self, number: int, data: bytes) -> None:
        """Add entries of a segment, packed as a page has them. The caller knows that they are new."""
        segment = self._segment(number)
        segment.packed.append(data)
        if segment.entries is not None:
            segment.entries.update(dict.fromkeys(entries_of(data)))
        self._dirty[number] = None

    def pop_before(self, limit: int, entries_max: int | None = None) -> list[Entry]:
        """Take out the entries with a time below the limit, those of the oldest segments first."""
        found: list[Entry] = []
        last = (limit - 1) // self.segment_ms
        for number in sorted(number for number in self._segments if number <= last):
            if entries_max is not None and len(found) >= entries_max:
                break
            entries = self._loaded(number)
            due = list(entries) if number < last else [entry for entry in entries if entry[0] < limit]
            if entries_max is not None:
                due = sorted(due)[: entries_max - len(found)]
            found += due
            if len(due) == len(entries):
                self._drop(number)
            elif due:
                for entry in due:
                    del entries[entry]
                self._rewrite(number)
        return found

    def discard(self, time: int, entry: bytes) -> None:
        number = time // self.segment_ms
        if number not in self._segments:
            return
        entries = self._loaded(number)
        if (time, entry) in entries:
            del entries[time, entry]
            if entries:
                self._rewrite(number)
            else:
                self._drop(number)

    def _rewrite(self, number: int) -> None:
        self._segments[number].is_rewritten = True
        self._dirty[number] = None

    def _drop(self, number: int) -> None:
        self._dirty.pop(number, None)
        for page in range(self._segments.pop(number).pages):
            self._backend.delete(self._store, _place(number, page))
            self._meta_dirty = True

    def between(self, low: int, high: int) -> list[Entry]:
        """Entries with low <= time <= high, by time, then by bytes."""
        first, last = low // self.segment_ms, high // self.segment_ms
        found: list[Entry] = []
        for number in sorted(number for number in self._segments if first <= number <= last):
            found += sorted(entry for entry in self._loaded(number) if low <= entry[0] <= high)
        return found

    def ordered(self) -> Iterator[Entry]:
        """All entries by time; segments are loaded as the caller gets to them."""
        for number in sorted(self._segments):
            yield from sorted(self._loaded(number))

    def first(self) -> Entry | None:
        return next(self.ordered(), None)

    def flush(self) -> None:
        for number in self._dirty:
            segment = self._segments[number]
            if segment.is_rewritten:
                self._write_anew(number, segment)
            else:
                self._append(number, segment)
            segment.fresh, segment.packed, segment.is_rewritten = {}, [], False
        self._dirty.clear()
        if self._meta_dirty:
            numbers = [
                number for number in sorted(self._segments) for _ in range(self._segments[number].pages)
            ]
            self._backend.put(self._store, META, struct.pack(f">{len(numbers)}q", *numbers))
            self._meta_dirty = False

    def _write_anew(self, number: int, segment: _Segment) -> None:
        self._backend.put(self._store, _place(number, 0), packed(segment.entries or ()))
        for page in range(1, segment.pages):
            self._backend.delete(self._store, _place(number, page))
        self._meta_dirty |= segment.pages != 1
        segment.pages = 1

    def _append(self, number: int, segment: _Segment) -> None:
        data = b"".join([*segment.packed, packed(segment.fresh)])
        if segment.pages:
            place = _place(number, segment.pages - 1)
            last = self._backend.get(self._store, place) or b""
            if len(last) < PAGE_BYTES:
                self._backend.put(self._store, place, last + data)
                return
        self._backend.put(self._store, _place(number, segment.pages), data)
        segment.pages += 1
        self._meta_dirty = True

    def forget(self) -> None:
        self._load_meta()


def _place(number: int, page: int) -> bytes:
    """The key of a page of a segment; that of the first one is the number alone."""
    return SEGMENT + (_PLACE.pack(number, page) if page else _NUMBER.pack(number))


def packed(entries: Iterable[Entry]) -> bytes:
    return b"".join(ENTRY.pack(time, len(entry)) + entry for time, entry in entries)


def entries_of(data: bytes) -> Iterator[Entry]:
    at, end = 0, len(data)
    while at < end:
        time, size = ENTRY.unpack_from(data, at)
        at += ENTRY.size + size
        yield time, data[at - size : at]
