"""Buffers: records that wait, ordered by time, one or several under a key.

In: a time, a key in bytes, a payload of values. Out: those that are due; `flush` gives the changes for the
changelog. Used by suppress, by outer joins and by joins with a grace. Each kind says how its payloads become
bytes. Does not know: when something is due.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.plans.interpreter.state.pages import Pages
from barnabas.plans.interpreter.state.tables import ChangeRecord
from barnabas.plans.interpreter.state.time_index import TimeIndex
from barnabas.plans.stores import StateBackend, StoreSpec

SEGMENT_MS = 10_000
_TIME = struct.Struct(">q")


class PayloadFormat(NamedTuple):
    """How payloads become bytes; reading also gets the bytes of the key under which one waits."""

    write: Callable[[bytes, Any], bytes]
    read: Callable[[bytes, bytes], Any]


class BufferState:
    """Payloads under a key with a time; iteration is by time, then by key."""

    def __init__(self, spec: StoreSpec, backend: StateBackend, form: PayloadFormat) -> None:
        self.spec, self._form = spec, form
        self._index = TimeIndex(backend, spec.name, SEGMENT_MS)
        # A page is the time and the payload, as bytes until somebody asks for the payload.
        self._pages: Pages[list[Any]] = Pages(backend, spec.name, _decode, _encode, list)
        self._payloads: dict[bytes, Any] = {}
        self._changed: dict[bytes, int] = {}
        self._count: int | None = None

    def get(self, key: bytes) -> Any:
        payload = self._payloads.get(key)
        if payload is None:
            page = self._pages.of(key)
            if page:
                payload = self._payloads[key] = self._form.read(key, page[1])
        return payload

    def put(self, time: int, key: bytes, payload: Any) -> None:
        """Store the payload of a key. The time of a key that waits already must be the one it has."""
        page = self._pages.touch(key)
        if not page:
            self._index.add(time, key)
            self._count = None if self._count is None else self._count + 1
        self._payloads[key] = payload
        page[:] = [time, None]  # its bytes are made when the batch ends
        self._changed[key] = time

    def size(self, key: bytes) -> int:
        """The bytes of a key that waits, and of its payload; 0 where none does."""
        page = self._pages.of(key)
        if not page:
            return 0
        if page[1] is None:
            page[1] = self._form.write(key, self._payloads[key])
        return _TIME.size + len(key) + len(page[1])

    def remove(self, time: int, key: bytes) -> None:
        self._pages.touch(key).clear()
        self._payloads.pop(key, None)
        self._index.discard(time, key)
        self._count = None if self._count is None else self._count - 1
        self._changed[key] = time

    def due(self, time: int) -> list[tuple[int, bytes]]:
        """Entries with a time of at most `time`, in order."""
        return self._index.between(-(1 << 62), time)

    def ordered(self) -> list[tuple[int, bytes]]:
        return list(self._index.ordered())

    def first(self) -> tuple[int, bytes] | None:
        return self._index.first()

    def __len__(self) -> int:
        if self._count is None:
            self._count = len(self.ordered())
        return self._count

    def flush(self) -> list[ChangeRecord]:
        """A record of the changelog is the page: the time, then the payload."""
        changes: list[ChangeRecord] = []
        for key, time in self._changed.items():
            page = self._pages.of(key)
            if page and page[1] is None:
                page[1] = self._form.write(key, self._payloads[key])
            changes.append((key, _encode(page) if page else None, time))
        self._changed.clear()
        self._pages.flush()
        self._index.flush()
        return changes

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Take over a record of the changelog; `flush` writes it."""
        page = self._pages.touch(key)
        if page:
            self._index.discard(page[0], key)
        page[:] = [] if value is None else _decode(value)
        if page:
            self._index.add(page[0], key)
        self._payloads.pop(key, None)
        self._count = None

    def forget(self) -> None:
        self._pages.forget()
        self._payloads.clear()
        self._index.forget()


def _decode(page: bytes) -> list[Any]:
    return [_TIME.unpack_from(page)[0], page[_TIME.size :]]


def _encode(page: list[Any]) -> bytes:
    time, payload = page
    return _TIME.pack(time) + bytes(payload)
