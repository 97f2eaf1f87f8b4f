"""Rows of a windowed table by the bytes of their keys, as views keep them: a window that the retention has
passed is deleted.

In: records of the table's topic. Out: as from `TableState`. Behind a key there are 8 bytes of the window's
start, of a session its end and its start. The retention is measured from the largest start, or end, that was
seen. Does not know: the operators.
"""

from __future__ import annotations

import struct

from barnabas.plans.interpreter.state.pages import KEYED
from barnabas.plans.interpreter.state.tables import ChangeRecord, TableState
from barnabas.plans.interpreter.state.time_index import TimeIndex
from barnabas.plans.interpreter.state.time_pages import OBSERVED
from barnabas.plans.interpreter.state.windows import SEGMENT_MS_MIN, SEGMENTS
from barnabas.plans.serdes import FromBytes, ToBytes
from barnabas.plans.stores import StateBackend, StoreSpec

_TIME = struct.Struct(">q")


class WindowedTableState(TableState):
    """`spec.window_size_ms` 0: sessions."""

    def __init__(self, spec: StoreSpec, backend: StateBackend, write: ToBytes, read: FromBytes) -> None:
        super().__init__(spec, backend, write, read)
        self._time_at = _TIME.size if spec.window_size_ms else 2 * _TIME.size  # from the end of a key
        self._index = TimeIndex(backend, spec.name, max(spec.retention_ms // SEGMENTS, SEGMENT_MS_MIN))
        stored = backend.get(spec.name, OBSERVED)
        self.observed_time: int = _TIME.unpack(stored)[0] if stored else -1

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        if len(key) < self._time_at:
            return  # no key of a window
        (time,) = _TIME.unpack_from(key, len(key) - self._time_at)
        self.observed_time = max(self.observed_time, time)
        if time <= self.observed_time - self.spec.retention_ms:
            value = None
        if value is None:
            self._index.discard(time, key)
        else:
            self._index.add(time, key)
        super().restore(key, value, timestamp)

    def flush(self) -> list[ChangeRecord]:
        for _, key in self._index.pop_before(self.observed_time - self.spec.retention_ms + 1):
            self._rows.pop(key, None)
            self._backend.delete(self.spec.name, KEYED + key)
        self._index.flush()
        self._backend.put(self.spec.name, OBSERVED, _TIME.pack(self.observed_time))
        return super().flush()

    def forget(self) -> None:
        super().forget()
        self._index.forget()
