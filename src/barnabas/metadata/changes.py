"""Changes to an immutable map: keys set or removed, applied only when there are any.

In: a map that must not change, keys set and removed one by one. Out: the map after them; the same object when
nothing changed. Every part of a delta uses it. A large map is not copied for a few changes: they are kept
beside it (`OverlaidMap`) until there are many.
Does not know: what the keys and values mean.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from math import isqrt
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
COPIED_MAX = 1_000  # entries: copying so few takes some microseconds


class OverlaidMap(Mapping[K, V]):
    """A map and its changes. It iterates like a changed copy: the base's keys first, then added ones in
    order. A key that was removed and added again comes last."""

    __slots__ = ("_base", "_over", "_removed", "_size")

    def __init__(self, base: dict[K, V], over: dict[K, V], removed: frozenset[K]) -> None:
        """`over` holds keys that are new or have another value. `removed` holds keys of the base that are
        absent or moved to the end."""
        self._base = base
        self._over = over
        self._removed = removed
        self._size = len(base) - len(removed) + sum(1 for key in over if key not in base or key in removed)

    @classmethod
    def of(cls, before: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V]:
        """`before` with changes; None removes a key. Returns a plain dict when it is small, or when much
        has changed."""
        if isinstance(before, OverlaidMap):
            base, over, removed = before._base, dict(before._over), set(before._removed)
        else:
            base, over, removed = before if isinstance(before, dict) else dict(before), {}, set()
        for key, value in changes.items():
            if value is not None:
                over[key] = value
            else:
                over.pop(key, None)
                if key in base:
                    removed.add(key)
        if len(over) + len(removed) > isqrt(len(base)):
            return merged(base, over, removed)
        return cls(base, over, frozenset(removed))

    def __getitem__(self, key: K) -> V:
        if key in self._over:
            return self._over[key]
        if key in self._removed:
            raise KeyError(key)
        return self._base[key]

    def get(self, key: K, default: V | None = None) -> V | None:  # type: ignore[override]
        found = self._over.get(key)
        if found is not None:
            return found
        return default if key in self._removed else self._base.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._over or (key in self._base and key not in self._removed)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[K]:
        return iter(self._copy())

    def keys(self) -> KeysView[K]:
        return self._copy().keys()

    def values(self) -> ValuesView[V]:
        return self._copy().values()

    def items(self) -> ItemsView[K, V]:
        return self._copy().items()

    def _copy(self) -> dict[K, V]:
        """A plain copy: faster for reading all entries."""
        return merged(self._base, self._over, self._removed)

    def __repr__(self) -> str:
        return repr(self._copy())


def merged(base: dict[K, V], over: dict[K, V], removed: set[K] | frozenset[K]) -> dict[K, V]:
    found = dict(base)
    for key in removed:
        del found[key]
    found.update(over)
    return found


class MapChanges(Generic[K, V]):
    __slots__ = ("base", "changed")

    def __init__(self, base: Mapping[K, V]) -> None:
        self.base = base
        self.changed: dict[K, V | None] = {}  # None: removed

    def get(self, key: K) -> V | None:
        """The value after the changes so far."""
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
        if len(self.base) > COPIED_MAX:
            return OverlaidMap.of(self.base, self.changed)
        after = dict(self.base)
        for key, value in self.changed.items():
            if value is None:
                after.pop(key, None)
            else:
                after[key] = value
        return after
