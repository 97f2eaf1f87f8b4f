"""A bounded memory of responses.

In: keys and values, the time. Out: values that are young enough. Does not know: what it keeps.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Cache(Generic[T]):
    """Keeps the values that were used last. Threads may share it: each step is one operation on a dict."""

    def __init__(self, capacity: int, ttl_s: float | None = None) -> None:
        self._capacity = max(capacity, 1)
        self._ttl_s = ttl_s
        self._kept: dict[Hashable, tuple[T, float]] = {}

    def get(self, key: Hashable, now: float = 0.0) -> T | None:
        found = self._kept.pop(key, None)
        if found is None:
            return None
        if self._ttl_s is not None and now - found[1] > self._ttl_s:
            return None
        self._kept[key] = found  # now the youngest
        return found[0]

    def put(self, key: Hashable, value: T, now: float = 0.0) -> None:
        self._kept.pop(key, None)
        while len(self._kept) >= self._capacity:
            try:
                self._kept.pop(next(iter(self._kept)), None)
            except (StopIteration, RuntimeError):  # another thread changed the dict
                break
        self._kept[key] = (value, now)

    def clear(self) -> None:
        self._kept.clear()
