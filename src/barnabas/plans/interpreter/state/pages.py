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
KEYED, PAGED, SEGMENT, META = b"k", b"p", b"t", b"m"
AFTER_KEYED = b"l"


class Pages(Generic[P]):
    """Pages by the bytes of a record's key. An empty page is deleted."""

    def __init__(
        self,
        backend: StateBackend,
        store: str,
        decode: Callable[[bytes], P],
        encode: Callable[[P], bytes],
        empty: Callable[[], P],
        prefix: bytes = KEYED,
    ) -> None:
        self._backend, self._store, self._prefix = backend, store, prefix
        self._decode, self._encode, self._empty = decode, encode, empty
        self.loaded: dict[bytes, P] = {}
        self.dirty: dict[bytes, None] = {}

    def of(self, key: bytes) -> P:
        found = self.loaded.get(key)
        if found is None:
            stored = self._backend.get(self._store, self._prefix + key)
            found = self.loaded[key] = self._empty() if stored is None else self._decode(stored)
        return found

    def load(self, keys: Iterable[bytes]) -> None:
        """Read the pages of many keys together."""
        missing = [key for key in dict.fromkeys(keys) if key not in self.loaded]
        pages = self._backend.get_many(self._store, [self._prefix + key for key in missing])
        for key, stored in zip(missing, pages, strict=True):
            self.loaded[key] = self._empty() if stored is None else self._decode(stored)

    def touch(self, key: bytes) -> P:
        """The page of a key, to be written back."""
        self.dirty[key] = None
        return self.of(key)

    def flush(self) -> None:
        for key in self.dirty:
            page = self.loaded[key]
            if page:
                self._backend.put(self._store, self._prefix + key, self._encode(page))
            else:
                self._backend.delete(self._store, self._prefix + key)
        self.dirty.clear()

    def forget(self) -> None:
        self.loaded.clear()


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
