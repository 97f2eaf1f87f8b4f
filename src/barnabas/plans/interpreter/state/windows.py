"""Stores of windows: values by key and window start, records of a join by key and time, sessions by key.

In: keys in bytes, times, Python values. Out: the same. What is older than the retention, measured from the
largest time that the store itself has seen, is neither stored nor found. Does not know: the operators.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import Any

from barnabas.plans.interpreter.state.pages import Chunks
from barnabas.plans.interpreter.state.tables import ChangeRecord
from barnabas.plans.interpreter.state.time_index import TimeIndex
from barnabas.plans.interpreter.state.time_pages import OBSERVED, TimePages
from barnabas.plans.serdes import FromBytes, ToBytes
from barnabas.plans.stores import StateBackend, StoreSpec

_TIME = struct.Struct(">q")
_TWO = struct.Struct(">qq")
_WINDOW_KEY = struct.Struct(">qi")
SEGMENT_MS_MIN = 1_000
EXPIRED_MAX = 2_000
SEGMENTS = 1_024  # a batch writes whole segments of the index


class _Timed:
    """Common to stores by time: the largest time seen, the index by time, pages by key and time, the changes
    of a batch."""

    pages: TimePages[Any]

    def __init__(self, spec: StoreSpec, backend: StateBackend, write: ToBytes, read: FromBytes) -> None:
        self.spec, self._backend, self._write, self._read = spec, backend, write, read
        self.retention_ms = spec.retention_ms
        self.index = TimeIndex(backend, spec.name, max(spec.retention_ms // SEGMENTS, SEGMENT_MS_MIN))
        stored = backend.get(spec.name, OBSERVED)
        self.observed_time: int = _TIME.unpack(stored)[0] if stored else -1
        self._stored_time = self.observed_time
        self._cleaned_to = -1
        self._changes: dict[tuple[bytes, int, int], tuple[Any, int]] = {}

    def observe(self, time: int) -> None:
        if time > self.observed_time:
            self.observed_time = time

    def _oldest(self) -> int:
        """The smallest time that is still found."""
        return self.observed_time - self.retention_ms + 1

    def _flush_times(self) -> None:
        self.index.flush()
        if self._stored_time != self.observed_time:
            self._backend.put(self.spec.name, OBSERVED, _TIME.pack(self.observed_time))
            self.pages.mark()
            self._stored_time = self.observed_time

    def forget(self) -> None:
        self.pages.forget()
        self.index.forget()


def expired_max(changed: int) -> int:
    """How many windows that are too old a batch removes: more than it can add, so that none pile up, but not
    those of all keys at once when a minute ends. Nobody sees those that are left."""
    return max(EXPIRED_MAX, 2 * changed)


def _start(item: tuple[int, tuple[Any, int]]) -> int:
    return item[0]


def _span(item: tuple[tuple[int, int], Any]) -> tuple[int, int]:
    return item[0]


class WindowState(_Timed):
    """A value with its timestamp for each window start of a key."""

    def __init__(self, spec: StoreSpec, backend: StateBackend, write: ToBytes, read: FromBytes) -> None:
        super().__init__(spec, backend, write, read)
        self.pages: TimePages[dict[int, tuple[Any, int]]] = TimePages(
            backend, spec, self._decode, self._encode, dict
        )

    def _decode(self, page: bytes) -> dict[int, tuple[Any, int]]:
        return {start: (self._read(data), time) for start, time, data in Chunks.read(_TWO, page)}

    def _encode(self, page: dict[int, tuple[Any, int]]) -> bytes:
        return Chunks.write(
            _TWO, ((start, row[1], self._write(row[0])) for start, row in sorted(page.items(), key=_start))
        )

    def get(self, key: bytes, start: int) -> tuple[Any, int] | None:
        return self.pages.of(key, start).get(start) if start >= self._oldest() else None

    def get_many(self, keys: Sequence[bytes], starts: Sequence[int]) -> list[tuple[Any, int] | None]:
        """Windows in the order of their keys; pages that are not at hand are read together."""
        self.pages.load(keys, starts)
        return [self.get(key, start) for key, start in zip(keys, starts, strict=True)]

    def put(self, key: bytes, start: int, value: Any, timestamp: int) -> None:
        self.observe(start)
        if start < self._oldest():
            return
        page = self.pages.touch(key, start)
        if value is None:
            if page.pop(start, None) is not None:
                self.index.discard(start, key)
        else:
            if start not in page:
                self.index.add(start, key)
            page[start] = (value, timestamp)
        self._changes[key, start, 0] = (value, timestamp)

    def of(self, key: bytes, low: int, high: int) -> list[tuple[int, tuple[Any, int]]]:
        """Windows of a key whose start lies in [low, high], by start."""
        low, high = max(low, self._oldest()), min(high, self.observed_time)
        return [
            (start, row)
            for page in self.pages.between(key, low, high)
            for start, row in sorted(page.items(), key=_start)
            if low <= start <= high
        ]

    def take_between(self, low: int, high: int) -> list[tuple[int, bytes, tuple[Any, int]]]:
        """Windows with a start in [low, high], by start, then by key. Finds what the retention hides
        already: a window that has just closed is at its edge, and stays until the flush."""
        found = self.index.between(low, high)
        return [(start, key, self.pages.of(key, start)[start]) for start, key in found]

    def flush(self) -> list[ChangeRecord]:
        expired = self.index.between(-(1 << 62), self._oldest() - 1)
        for start, key in expired[: expired_max(len(self._changes))]:
            self.pages.touch(key, start).pop(start, None)
            self.index.discard(start, key)
        changes: list[ChangeRecord] = [
            (key + _WINDOW_KEY.pack(start, 0), None if value is None else self._write(value), time)
            for (key, start, _), (value, time) in self._changes.items()
        ]
        self._changes.clear()
        self.pages.flush()
        self._flush_times()
        return changes

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        start, _ = _WINDOW_KEY.unpack(key[-12:])
        self.put(key[:-12], start, None if value is None else self._read(value), timestamp)

    def keys(self, first: bytes | None = None, last: bytes | None = None) -> Iterator[bytes]:
        """Keys with a window, in order; `last` is not included."""
        return self.pages.keys(first, last)


class JoinState(_Timed):
    """Records of one side of a stream-stream join, in order of time, then of arrival."""

    def __init__(self, spec: StoreSpec, backend: StateBackend, write: ToBytes, read: FromBytes) -> None:
        super().__init__(spec, backend, write, read)
        self.pages: TimePages[list[tuple[int, int, Any]]] = TimePages(
            backend, spec, self._decode, self._encode, list
        )
        stored = backend.get(spec.name, b"s")
        self.sequence = _TIME.unpack(stored)[0] if stored else 0

    def _decode(self, page: bytes) -> list[tuple[int, int, Any]]:
        return [(time, seq, self._read(data)) for time, seq, data in Chunks.read(_TWO, page)]

    def _encode(self, page: list[tuple[int, int, Any]]) -> bytes:
        return Chunks.write(_TWO, ((time, seq, self._write(value)) for time, seq, value in page))

    def put(self, key: bytes, value: Any, timestamp: int) -> None:
        self.observe(timestamp)
        if timestamp < self._oldest():
            return
        self.sequence += 1
        insort(self.pages.touch(key, timestamp), (timestamp, self.sequence, value), key=lambda row: row[:2])
        self.index.add(timestamp, key)
        self._changes[key, timestamp, self.sequence] = (value, timestamp)

    def take_sequences(self, count: int) -> None:
        """Records were stored elsewhere, under the next numbers."""
        if count:
            self.sequence += count
            self._backend.put(self.spec.name, b"s", _TIME.pack(self.sequence))

    def of(self, key: bytes, low: int, high: int) -> list[tuple[int, int, Any]]:
        """Records of a key in [low, high], by time."""
        low, high = max(low, self._oldest()), min(high, self.observed_time)
        found = []
        for page in self.pages.between(key, low, high):
            first = bisect_left(page, low, key=lambda row: row[0])
            found += [row for row in page[first:] if row[0] <= high]
        return found

    def flush(self) -> list[ChangeRecord]:
        oldest = self._oldest()
        for time, key in self.index.between(-(1 << 62), oldest - 1):
            page = self.pages.touch(key, time)
            while page and page[0][0] < oldest:
                page.pop(0)
            self.index.discard(time, key)
        changes: list[ChangeRecord] = [
            (key + _WINDOW_KEY.pack(start, seq & 0x7FFFFFFF), self._write(value), time)
            for (key, start, seq), (value, time) in self._changes.items()
        ]
        if changes:
            self._backend.put(self.spec.name, b"s", _TIME.pack(self.sequence))
        self._changes.clear()
        self.pages.flush()
        self._flush_times()
        return changes

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        if value is not None:
            time, sequence = _WINDOW_KEY.unpack(key[-12:])
            highest = max(self.sequence, sequence)
            self.sequence = sequence - 1  # the record keeps its number
            self.put(key[:-12], self._read(value), time)
            self.sequence = highest


class SessionState(_Timed):
    """Sessions of a key: a value for each [start, end]."""

    def __init__(self, spec: StoreSpec, backend: StateBackend, write: ToBytes, read: FromBytes) -> None:
        super().__init__(spec, backend, write, read)
        self.pages: TimePages[dict[tuple[int, int], Any]] = TimePages(
            backend, spec, self._decode, self._encode, dict, time_at=1
        )

    def _decode(self, page: bytes) -> dict[tuple[int, int], Any]:
        return {(start, end): self._read(data) for start, end, data in Chunks.read(_TWO, page)}

    def _encode(self, page: dict[tuple[int, int], Any]) -> bytes:
        some = sorted(page.items(), key=_span)
        return Chunks.write(_TWO, ((start, end, self._write(value)) for (start, end), value in some))

    def find(self, key: bytes, end_min: int, start_max: int) -> list[tuple[int, int, Any]]:
        """Sessions that end at `end_min` or later and start at `start_max` or earlier, by end, then by
        start."""
        end_min = max(end_min, self._oldest())
        found = [
            (start, end, value)
            for page in self.pages.between(key, end_min, self.observed_time)
            for (start, end), value in page.items()
            if end >= end_min and start <= start_max
        ]
        return sorted(found, key=lambda session: (session[1], session[0]))

    def put(self, key: bytes, start: int, end: int, value: Any) -> None:
        self.observe(end)
        page = self.pages.touch(key, end)
        entry = _TIME.pack(start) + key
        if value is None:
            if page.pop((start, end), None) is not None:
                self.index.discard(end, entry)
        else:
            if (start, end) not in page:
                self.index.add(end, entry)
            page[start, end] = value
        self._changes[key, start, end] = (value, end)

    def ended_between(self, low: int, high: int) -> list[tuple[int, int, bytes]]:
        """(end, start, key) of sessions whose end lies in [low, high]."""
        found = self.index.between(low, high)
        return [(end, _TIME.unpack_from(entry)[0], entry[8:]) for end, entry in found]

    def value_of(self, key: bytes, start: int, end: int) -> Any:
        return self.pages.of(key, end).get((start, end))

    def flush(self) -> list[ChangeRecord]:
        # A session at the edge is not found any more, but its final result may still be due.
        for end, entry in self.index.between(-(1 << 62), self._oldest() - 2):
            self.pages.touch(entry[8:], end).pop((_TIME.unpack_from(entry)[0], end), None)
            self.index.discard(end, entry)
        changes: list[ChangeRecord] = [
            (key + _TWO.pack(end, start), None if value is None else self._write(value), time)
            for (key, start, end), (value, time) in self._changes.items()
        ]
        self._changes.clear()
        self.pages.flush()
        self._flush_times()
        return changes

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        end, start = _TWO.unpack(key[-16:])
        self.put(key[:-16], start, end, None if value is None else self._read(value))

    def keys(self, first: bytes | None = None, last: bytes | None = None) -> Iterator[bytes]:
        """Keys with a session, in order; `last` is not included."""
        return self.pages.keys(first, last)
