"""Changes to a map: keys set or removed, laid over an immutable map only when there are any.

In: a map that nobody may change, keys set and removed one by one. Out: the map after them, the same object
when nothing changed. Every part of a delta is made of these. A large map is not copied for a few changes:
they are kept beside it (`OverlaidMap`) until there are enough of them.
Does not know: what the keys and values mean.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from math import isqrt
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
COPIED_MAX = 1_000  # entries: copying these takes some microseconds


class OverlaidMap(Mapping[K, V]):
    """A map, and what is different from it. In the order of the map, then in that of additions, as a copy
    would be; a key that was removed and came back is at the end."""

    __slots__ = ("_base", "_gone", "_over", "_size")

    def __init__(self, base: dict[K, V], over: dict[K, V], gone: frozenset[K]) -> None:
        """`over` are keys that are new or have another value, `gone` those of the base that are not there,
        or not in their old place."""
        self._base = base
        self._over = over
        self._gone = gone
        self._size = len(base) - len(gone) + sum(1 for key in over if key not in base or key in gone)

    @classmethod
    def of(cls, before: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V]:
        """`before` with changes; None removes a key. A plain map where that is small, or much has changed."""
        if isinstance(before, OverlaidMap):
            base, over, gone = before._base, dict(before._over), set(before._gone)
        else:
            base, over, gone = before if isinstance(before, dict) else dict(before), {}, set()
        for key, value in changes.items():
            if value is not None:
                over[key] = value
            else:
                over.pop(key, None)
                if key in base:
                    gone.add(key)
        if len(over) + len(gone) > isqrt(len(base)):
            return merged(base, over, gone)
        return cls(base, over, frozenset(gone))

    def __getitem__(self, key: K) -> V:
        if key in self._over:
            return self._over[key]
        if key in self._gone:
            raise KeyError(key)
        return self._base[key]

    def get(self, key: K, default: V | None = None) -> V | None:  # type: ignore[override]
        found = self._over.get(key)
        if found is not None:
            return found
        return default if key in self._gone else self._base.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._over or (key in self._base and key not in self._gone)

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
        """Who looks at everything looks at a plain map, made once for all its entries."""
        return merged(self._base, self._over, self._gone)

    def __repr__(self) -> str:
        return repr(self._copy())


def merged(base: dict[K, V], over: dict[K, V], gone: set[K] | frozenset[K]) -> dict[K, V]:
    found = dict(base)
    for key in gone:
        del found[key]
    found.update(over)
    return found


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
        if len(self.base) > COPIED_MAX:
            return OverlaidMap.of(self.base, self.changed)
        after = dict(self.base)
        for key, value in self.changed.items():
            if value is None:
                after.pop(key, None)
            else:
                after[key] = value
        return after
