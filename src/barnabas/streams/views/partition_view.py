"""One partition of a store: its changelog's records as pages of a file, and lookups in it.

In: records in order of their offsets, keys in bytes. Out: rows with the bytes of their keys, so that
partitions can be merged in order. One thread writes, many read; both take the lock for moments. Does not
know: brokers.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from barnabas.plans.interpreter.state.tables import VersionedState
from barnabas.plans.interpreter.state.windows import SessionState, WindowState
from barnabas.plans.interpreter.task import key_reader_of, state_of
from barnabas.plans.stores import StoreSpec
from barnabas.plans.windows import Windowed
from barnabas.streams.spark import restoring
from barnabas.streams.spark.state_files import NEW, StateFile
from barnabas.streams.spark.task_port import InputRecord
from barnabas.streams.views.rows import Row

RECORDS_A_LOCK = 500  # a lookup waits for so many records at most
ROWS_CACHED_MAX = 20_000
Found = tuple[bytes, Row]  # the bytes of the row's key, and of its window's times


class PartitionView:
    """`end_of` gives the end of a window that starts at a time; `finish` makes results of stored values."""

    def __init__(
        self,
        spec: StoreSpec,
        application_id: str,
        path: Path,
        *,
        end_of: Callable[[int], int],
        finish: Callable[[Any], Any] | None,
    ) -> None:
        self._file = StateFile(path)
        self._application_id = application_id
        self.state: Any = state_of(spec, self._file, application_id)
        self._read_key = key_reader_of(spec, application_id)
        self._end_of, self._finish = end_of, finish
        self._lock = threading.Lock()
        self._lookups = 0
        self.topic_id, self.position = "", -1
        if self._file.version != NEW:
            stored = json.loads(self._file.version)
            self.topic_id, self.position = stored["topic"], stored["offset"]
            if self._file.has_changes:  # the store has laid its pages out anew
                self._file.keep(self._file.version)

    def begin(self, topic_id: str, position: int) -> None:
        """Forget everything: the topic is another one than before, or this is the first look at it."""
        with self._lock:
            self.topic_id, self.position = topic_id, position
            self._file.clear(self._version())
            self.state = state_of(self.state.spec, self._file, self._application_id)

    def _version(self) -> str:
        return json.dumps({"topic": self.topic_id, "offset": self.position})

    def apply(self, records: Sequence[InputRecord], position: int) -> None:
        """Apply records of the changelog; the next one is at `position`."""
        for at in range(0, len(records), RECORDS_A_LOCK):
            with self._lock:
                restoring.apply(self.state, records[at : at + RECORDS_A_LOCK])
        with self._lock:
            self.position = position
            self._file.keep(self._version())
            self._forget()

    def _forget(self) -> None:
        self.state.forget()
        self._file.forget()
        self._lookups = 0

    def _row(self, key: Any, value: Any, timestamp: int) -> Row:
        return Row(key, value if self._finish is None else self._finish(value), timestamp)

    def _bounded(self, found: Iterator[Found], limit: int | None) -> list[Found]:
        rows = list(islice(found, limit))
        self._lookups += len(rows) + 1
        if self._lookups > ROWS_CACHED_MAX:
            self._forget()
        return rows

    # -- tables ------------------------------------------------------------------------------------

    def get(self, key: bytes, as_of: int | None) -> list[Found]:
        state = self.state
        with self._lock:
            is_past = isinstance(state, VersionedState) and as_of is not None
            row = state.as_of(key, as_of) if is_past else state.get(key)
            found = [] if row is None else [(key, self._row(self._read_key(key), *row))]
            return self._bounded(iter(found), None)

    def versions(self, key: bytes, low: int, high: int) -> list[Found]:
        with self._lock:
            return [
                (key, self._row(self._read_key(key), value, time))
                for time, value in self.state.versions(key, low, high)
                if value is not None
            ]

    def between(self, first: bytes | None, last: bytes | None, limit: int | None) -> list[Found]:
        """Rows of a table from `first` on, before `last`, by the bytes of their keys."""
        with self._lock:
            rows = ((key, self._row(self._read_key(key), *row)) for key, row in self.state.range(first, last))
            return self._bounded(rows, limit)

    def count(self) -> int:
        with self._lock:
            return sum(1 for _ in self._file.range(self.state.spec.name, b"k", b"l"))

    # -- windows -----------------------------------------------------------------------------------

    def windows(self, key: bytes, low: int, high: int) -> list[Found]:
        """Windows of a key that start in [low, high]."""
        with self._lock:
            return self._bounded(self._windows_of(key, low, high), None)

    def _windows_of(self, key: bytes, low: int, high: int) -> Iterator[Found]:
        state: WindowState = self.state
        read = self._read_key(key)
        for start, (value, timestamp) in state.of(key, low, high):
            windowed = Windowed(read, start, self._end_of(start))
            yield key + start.to_bytes(8, "big"), self._row(windowed, value, timestamp)

    def all_windows(
        self, first: bytes | None, last: bytes | None, low: int, high: int, limit: int | None
    ) -> list[Found]:
        state: WindowState = self.state
        with self._lock:
            rows = (row for key in state.keys(first, last) for row in self._windows_of(key, low, high))
            return self._bounded(rows, limit)

    # -- sessions ----------------------------------------------------------------------------------

    def sessions(self, key: bytes, end_min: int, start_max: int) -> list[Found]:
        """Sessions of a key that end at `end_min` or later and start at `start_max` or earlier."""
        with self._lock:
            return self._bounded(self._sessions_of(key, end_min, start_max), None)

    def _sessions_of(self, key: bytes, end_min: int, start_max: int) -> Iterator[Found]:
        state: SessionState = self.state
        read = self._read_key(key)
        for start, end, value in state.find(key, end_min, start_max):
            place = key + end.to_bytes(8, "big") + start.to_bytes(8, "big")
            yield place, self._row(Windowed(read, start, end), value, end)

    def all_sessions(
        self, first: bytes | None, last: bytes | None, end_min: int, start_max: int, limit: int | None
    ) -> list[Found]:
        state: SessionState = self.state
        with self._lock:
            rows = (
                row for key in state.keys(first, last) for row in self._sessions_of(key, end_min, start_max)
            )
            return self._bounded(rows, limit)

    def close(self) -> None:
        with self._lock:
            self._file.close()
