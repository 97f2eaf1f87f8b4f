"""Stores as processors of the user see them: Python keys and values in place of bytes.

In: a task, the name of a store. Out: a handle of the store's kind. Iteration is in the order of the keys'
bytes, then of time. What a processor writes gets the timestamp of its record. Stores of global tables are to
be read only. Does not know: how stores keep what they have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from barnabas.plans.foreign_keys import after_prefix
from barnabas.plans.interpreter.task import Task
from barnabas.plans.stores import StoreKind
from barnabas.plans.windows import Windowed

FOREVER = (1 << 63) - 1


class StoreHandle:
    """Common to all kinds."""

    def __init__(self, task: Task, name: str) -> None:
        self.name = name
        self._task, self._state = task, task.state(name)
        self._write, self._read = task.key_writer(name), task.key_reader(name)
        self._is_global = name in task.global_states

    def _check_writable(self) -> None:
        if self._is_global:
            raise TypeError(f"the store {self.name} is that of a global table: only its topic changes it")

    def _bounds(self, first: Any, last: Any) -> tuple[bytes | None, bytes | None]:
        """The bytes of a range of keys, both ends included."""
        low = None if first is None else self._write(first)
        return low, None if last is None else self._write(last) + b"\x00"


class KeyValueStore(StoreHandle):
    """The last value of each key."""

    def get(self, key: Any) -> Any:
        row = self._state.get(self._write(key))
        return None if row is None else row[0]

    def put(self, key: Any, value: Any) -> Any:
        """Store a value; None deletes the key."""
        self._check_writable()
        self._state.put(self._write(key), value, self._task.timestamp)

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Store a value where the key has none. Gives the one that it has had."""
        before = self.get(key)
        if before is None:
            self.put(key, value)
        return before

    def put_all(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        for key, value in pairs:
            self.put(key, value)

    def delete(self, key: Any) -> Any:
        before = self.get(key)
        self.put(key, None)
        return before

    def range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]:
        """Entries from `first` to `last`, both included; without them all."""
        for key, row in self._state.range(*self._bounds(first, last)):
            yield self._read(key), row[0]

    def prefix(self, prefix: Any) -> Iterator[tuple[Any, Any]]:
        """Entries whose keys begin with the bytes of `prefix`, which may be bytes or a key."""
        data = prefix if isinstance(prefix, bytes) else self._write(prefix)
        for key, row in self._state.range(data, after_prefix(data)):
            yield self._read(key), row[0]

    def all(self) -> Iterator[tuple[Any, Any]]:
        return self.range()


class VersionedStore(KeyValueStore):
    """The versions of each key by time. Methods without a time see the newest one."""

    def get(self, key: Any, as_of: int | None = None) -> Any:
        found = self.version(key, as_of)
        return None if found is None else found[0]

    def version(self, key: Any, as_of: int | None = None) -> tuple[Any, int] | None:
        """The value that was valid at a time, and since when."""
        data = self._write(key)
        found = self._state.get(data) if as_of is None else self._state.as_of(data, as_of)
        return None if found is None else (found[0], found[1])

    def put(self, key: Any, value: Any, timestamp: int | None = None) -> bool:
        """Store a version; None deletes. False where it is older than the history."""
        self._check_writable()
        time = self._task.timestamp if timestamp is None else timestamp
        return bool(self._state.put(self._write(key), value, time))

    def versions(self, key: Any, low: int = 0, high: int = FOREVER) -> list[tuple[int, Any]]:
        """(time, value) of versions that were valid at a time in [low, high], oldest first."""
        return list(self._state.versions(self._write(key), low, high))


class WindowStore(StoreHandle):
    """A value for each window of a key, by the window's start."""

    def get(self, key: Any, start: int) -> Any:
        row = self._state.get(self._write(key), start)
        return None if row is None else row[0]

    def put(self, key: Any, value: Any, start: int) -> None:
        """Store a value; None deletes. A window that the retention has passed is left out."""
        self._check_writable()
        self._state.put(self._write(key), start, value, self._task.timestamp)

    def fetch(self, key: Any, low: int = 0, high: int = FOREVER) -> list[tuple[int, Any]]:
        """(start, value) of a key's windows that start in [low, high], by start."""
        return [(start, row[0]) for start, row in self._state.of(self._write(key), low, high)]

    def range(
        self, first: Any = None, last: Any = None, low: int = 0, high: int = FOREVER
    ) -> Iterator[tuple[Windowed, Any]]:
        """Windows of keys from `first` to `last`, both included, that start in [low, high]."""
        size = self._state.spec.window_size_ms
        for data in self._state.keys(*self._bounds(first, last)):
            key = self._read(data)
            for start, row in self._state.of(data, low, high):
                yield Windowed(key, start, start + size if size else FOREVER), row[0]

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        return self.range()


class SessionStore(StoreHandle):
    """A value for each session of a key."""

    def get(self, key: Any, start: int, end: int) -> Any:
        return self._state.value_of(self._write(key), start, end)

    def put(self, key: Any, value: Any, start: int, end: int) -> None:
        """Store a value; None deletes."""
        self._check_writable()
        self._state.put(self._write(key), start, end, value)

    def fetch(self, key: Any, low: int = 0, high: int = FOREVER) -> list[tuple[Windowed, Any]]:
        """A key's sessions that end at `low` or later and start at `high` or earlier, by end."""
        found = self._state.find(self._write(key), low, high)
        return [(Windowed(key, start, end), value) for start, end, value in found]

    def range(
        self, first: Any = None, last: Any = None, low: int = 0, high: int = FOREVER
    ) -> Iterator[tuple[Windowed, Any]]:
        """Sessions of keys from `first` to `last`, both included, as `fetch` finds them."""
        for data in self._state.keys(*self._bounds(first, last)):
            yield from self.fetch(self._read(data), low, high)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        return self.range()


HANDLES: dict[StoreKind, type[StoreHandle]] = {
    StoreKind.KEY_VALUE: KeyValueStore,
    StoreKind.TIMESTAMPED: KeyValueStore,
    StoreKind.VERSIONED: VersionedStore,
    StoreKind.WINDOW: WindowStore,
    StoreKind.SESSION: SessionStore,
}


def handle_of(task: Task, name: str) -> Any:
    """The store of a task, as a processor and the test driver see it."""
    kind = task.state(name).spec.kind
    if kind not in HANDLES:
        raise KeyError(f"the store {name} is of the kind {kind.value}: only its operator reads it")
    return HANDLES[kind](task, name)
