"""Buffers: records that wait, ordered by time, one or several under a key.

In: a time, a key in bytes, a payload of values. Out: those that are due. Used by suppress, by outer joins
and by joins with a grace. Payloads are stored by pickle: they hold keys and values of any class of the user
and never leave the task. Does not know: when something is due.
"""

from __future__ import annotations

import pickle
from typing import Any

from barnabas.plans.interpreter.state.pages import Pages, TimeIndex
from barnabas.plans.interpreter.state.tables import ChangeRecord
from barnabas.plans.serdes import FromBytes, ToBytes
from barnabas.plans.stores import StateBackend, StoreSpec

SEGMENT_MS = 10_000


class BufferState:
    """Payloads under a key with a time; iteration is by time, then by key."""

    def __init__(self, spec: StoreSpec, backend: StateBackend, write: ToBytes, read: FromBytes) -> None:
        self.spec = spec
        self._index = TimeIndex(backend, spec.name, SEGMENT_MS)
        self._pages: Pages[list[Any]] = Pages(backend, spec.name, pickle.loads, pickle.dumps, list)
        self._count: int | None = None

    def get(self, key: bytes) -> Any:
        page = self._pages.of(key)
        return page[0] if page else None

    def put(self, time: int, key: bytes, payload: Any) -> None:
        """Store the payload of a key. The time of a key that waits already must be the one it has."""
        page = self._pages.touch(key)
        if not page:
            self._index.add(time, key)
            self._count = None if self._count is None else self._count + 1
        page[:] = [payload]

    def remove(self, time: int, key: bytes) -> None:
        self._pages.touch(key).clear()
        self._index.discard(time, key)
        self._count = None if self._count is None else self._count - 1

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
        self._pages.flush()
        self._index.flush()
        return []

    def forget(self) -> None:
        self._pages.forget()
        self._index.forget()
