"""Pages of a key by time: a page has what a key has in a span of time, so a batch reads and writes the spans
that its records meet, however long a key is kept.

In: a backend, keys in bytes, times. Out: objects to change in place, as from `Pages`. Pages lie under the
key, in which zero bytes are escaped, and the number of the span: their order is that of keys, then of time. A
store whose pages cover other spans, or whole keys, is laid out anew when it is opened. Does not know: what
the objects are.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Generic, TypeVar

from barnabas.plans.interpreter.state.pages import KEYED, PAGED, Chunks, Pages
from barnabas.plans.stores import StateBackend, StoreKind, StoreSpec

P = TypeVar("P")
LAYOUT, OBSERVED = b"l", b"o"
WHOLE_KEY_MS = 1 << 62
WINDOWS_A_PAGE = 8
SPANS_ASKED_MAX = 64  # for more spans the backend is asked which ones there are
_END = b"\x00\x00"
_BIAS = 1 << 63  # negative numbers come first
_NUMBER = struct.Struct(">Q")
_TIME = struct.Struct(">q")
_TWO = struct.Struct(">qq")


def page_ms_of(spec: StoreSpec) -> int:
    """The time that a page covers."""
    if not spec.page_ms and spec.kind == StoreKind.WINDOW and spec.window_size_ms:
        return WINDOWS_A_PAGE * spec.window_size_ms  # a store of the user, for a processor
    return spec.page_ms or WHOLE_KEY_MS


def _escaped(key: bytes) -> bytes:
    return key.replace(b"\x00", b"\x00\xff")


def _place(key: bytes, number: int) -> bytes:
    return _escaped(key) + _END + _NUMBER.pack(number + _BIAS)


def page_key(key: bytes, number: int) -> bytes:
    """The address of a key's page for a span in the backend."""
    return PAGED + _place(key, number)


def page_keys(keys: Iterable[bytes], numbers: Iterable[int]) -> list[bytes]:
    return [page_key(key, number) for key, number in zip(keys, numbers, strict=True)]


def _key_in(place: bytes) -> bytes:
    return place[: -_NUMBER.size - len(_END)].replace(b"\x00\xff", b"\x00")


def _number_in(place: bytes) -> int:
    return int(_NUMBER.unpack_from(place, len(place) - _NUMBER.size)[0]) - _BIAS


class TimePages(Generic[P]):
    """`time_at` says which of the two numbers of a page's entries is the time by which pages are cut."""

    def __init__(
        self,
        backend: StateBackend,
        spec: StoreSpec,
        decode: Callable[[bytes], P],
        encode: Callable[[P], bytes],
        empty: Callable[[], P],
        *,
        time_at: int = 0,
    ) -> None:
        self._backend, self._store, self._decode = backend, spec.name, decode
        self.page_ms = page_ms_of(spec)
        self._pages: Pages[P] = Pages(backend, spec.name, decode, encode, empty, PAGED)
        self._layout = backend.get(spec.name, LAYOUT)
        if self._layout != self._own_layout:
            self._lay_out_anew(time_at)

    @property
    def _own_layout(self) -> bytes:
        return _TIME.pack(self.page_ms)

    def of(self, key: bytes, time: int) -> P:
        return self._pages.of(_place(key, time // self.page_ms))

    def touch(self, key: bytes, time: int) -> P:
        """The page of a key and time, to be written back."""
        return self._pages.touch(_place(key, time // self.page_ms))

    def load(self, keys: Sequence[bytes], times: Sequence[int]) -> None:
        """Read pages together."""
        some = zip(keys, times, strict=True)
        self._pages.load(_place(key, time // self.page_ms) for key, time in some)

    def between(self, key: bytes, low: int, high: int) -> Iterator[P]:
        """Pages of a key that cover [low, high], by time."""
        first, last = low // self.page_ms, high // self.page_ms
        if last - first < SPANS_ASKED_MAX:
            for number in range(first, last + 1):
                yield self._pages.of(_place(key, number))
            return
        lowest, highest = _place(key, first), _place(key, last)
        some = self._backend.range(self._store, PAGED + lowest, PAGED + highest + b"\x00")
        changed = sorted(each for each in self._pages.dirty if lowest <= each <= highest)
        yield from map(self._pages.of, self._together(some, changed))

    def _together(self, stored: Iterable[tuple[bytes, bytes]], changed: Iterable[bytes]) -> Iterator[bytes]:
        """Places of pages, in order; pages that the backend has are at hand then."""
        before = None
        for place in heapq.merge(self._taken(stored), changed):
            if place != before:
                yield place
            before = place

    def _taken(self, stored: Iterable[tuple[bytes, bytes]]) -> Iterator[bytes]:
        for name, page in stored:
            place = name[1:]
            if place not in self._pages.loaded:
                self._pages.loaded[place] = self._decode(page)
            yield place

    def keys(self, first: bytes | None = None, last: bytes | None = None) -> Iterator[bytes]:
        """Keys with a page, in order; `last` is not included. They are read as the caller gets to them."""
        low = b"" if first is None else _escaped(first)
        high = None if last is None else _escaped(last)
        after = bytes([PAGED[0] + 1]) if high is None else PAGED + high
        stored = (name[1:] for name, _ in self._backend.range(self._store, PAGED + low, after))
        changed = sorted(
            place
            for place in self._pages.dirty
            if place >= low and (high is None or place < high) and self._pages.of(place)
        )
        before = None
        for place in heapq.merge(stored, changed):
            key = _key_in(place)
            if key != before:
                yield key
            before = key

    def flush(self) -> None:
        self._pages.flush()

    def mark(self) -> None:
        """The store has pages from now on: write how they are laid out."""
        if self._layout != self._own_layout:
            self._layout = self._own_layout
            self._backend.put(self._store, LAYOUT, self._layout)

    def forget(self) -> None:
        self._pages.forget()

    # -- other layouts -----------------------------------------------------------------------------

    def _lay_out_anew(self, time_at: int) -> None:
        """Cut the pages that another version, or windows of another size, have left."""
        if self._backend.get(self._store, OBSERVED) is None:
            return  # no batch has written the store: there is nothing to search
        if self._layout is None:
            first, after = KEYED, bytes([KEYED[0] + 1])
        else:
            first, after = PAGED, bytes([PAGED[0] + 1])
        some = list(self._backend.range(self._store, first, after))
        for name, _ in some:
            self._backend.delete(self._store, name)
        keyed = ((_key_in(name[1:]) if first == PAGED else name[1:], page) for name, page in some)
        for key, pages in groupby(keyed, key=lambda each: each[0]):
            for number, page in self._cut([page for _, page in pages], time_at):
                self._backend.put(self._store, page_key(key, number), page)
        self.mark()

    def _cut(self, pages: list[bytes], time_at: int) -> list[tuple[int, bytes]]:
        found: dict[int, list[tuple[Any, ...]]] = {}
        for page in pages:
            for entry in Chunks.read(_TWO, page):
                found.setdefault(entry[time_at] // self.page_ms, []).append(entry)
        return [(number, Chunks.write(_TWO, iter(sorted(some)))) for number, some in found.items()]
