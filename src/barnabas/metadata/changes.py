"""Changes to a map: keys set or removed, laid over an immutable map only when there are any.

In: a map that nobody may change, keys set and removed one by one. Out: the map after them, the same object
when nothing changed. Every part of a delta is made of these.
Does not know: what the keys and values mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class MapChanges(Generic[K, V]):
    __slots__ = ("base", "changed")

    def __init__(self, base: Mapping[K, V]) -> None:
        self.base = base
        self.changed: dict[K, V | None] = {}  # None: removed

    def get(self, key: K) -> V | None:
        """The value as it is after the changes so far."""
        if key in self.changed:
            return self.changed[key]
        return self.base.get(key)

    def set(self, key: K, value: V) -> None:
        self.changed[key] = value

    def remove(self, key: K) -> None:
        self.changed[key] = None

    def apply(self) -> Mapping[K, V]:
        if not self.changed:
            return self.base
        after = dict(self.base)
        for key, value in self.changed.items():
            if value is None:
                after.pop(key, None)
            else:
                after[key] = value
        return after
