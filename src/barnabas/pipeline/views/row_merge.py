"""Merges partial results of a key: measure by measure, in any grouping, in the order of their versions.

In: rows as tuples in the order of `Layout.stored`. Out: the merged row. The result is what Spark would
compute from all rows at once: nulls are ignored, NaN is greater than every number, and `last` takes the
later event time or, for equal times, the greater value. Does not know: versions, horizons, the store.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from barnabas.pipeline.views import sketches
from barnabas.pipeline.views.layout import Layout, Merge, last_at, sketch_of

Row = tuple[Any, ...]
Rule = Callable[[list[Any], Row], None]


def rank(value: Any) -> tuple[int, Any]:
    """Orders values as Spark does: null first, NaN last."""
    if value is None:
        return (0, 0)
    if value != value:
        return (2, 0)
    return (1, value)


def add(old: Any, new: Any) -> Any:
    if old is None or new is None:
        return new if old is None else old
    return old + new


def least(old: Any, new: Any) -> Any:
    if old is None or new is None:
        return new if old is None else old
    return min(old, new, key=rank)


def greatest(old: Any, new: Any) -> Any:
    return max(old, new, key=rank)


SIMPLE: dict[Merge, Callable[[Any, Any], Any]] = {
    Merge.SUM: add,
    Merge.COUNT: add,
    Merge.MIN: least,
    Merge.MAX: greatest,
}


class Merger:
    """Merges rows of one layout."""

    def __init__(self, layout: Layout) -> None:
        self._place = {column.name: place for place, column in enumerate(layout.stored)}
        self._rules = tuple(self._rule(column.name, column.merge) for column in layout.measures)
        self.keys = tuple(self._place[column.name] for column in layout.keys)

    def merge(self, old: Row, new: Row) -> Row:
        """Merge two rows of the same key; `new` is from later versions."""
        merged = list(old)
        for rule in self._rules:
            rule(merged, new)
        return tuple(merged)

    def fold(self, base: Row | None, parts: Iterable[tuple[bool, Row | None]]) -> Row | None:
        """The row of a key after `parts`. A part is (whether it replaces, its row or None if the key is
        gone)."""
        row = base
        for replaces, part in parts:
            row = part if replaces or row is None or part is None else self.merge(row, part)
        return row

    def _rule(self, measure: str, merge: Merge | None) -> Rule:
        place = self._place[measure]
        if merge is Merge.LAST:
            return later(place, self._place[last_at(measure)])
        if merge is Merge.DISTINCT:
            return united(place, self._place[sketch_of(measure)])
        assert merge is not None
        return simple(place, SIMPLE[merge])


def simple(place: int, function: Callable[[Any, Any], Any]) -> Rule:
    def rule(merged: list[Any], new: Row) -> None:
        merged[place] = function(merged[place], new[place])

    return rule


def later(place: int, at: int) -> Rule:
    order = operator.itemgetter(at, place)

    def rule(merged: list[Any], new: Row) -> None:
        if ranks(order(new)) > ranks(order(merged)):
            merged[place], merged[at] = new[place], new[at]

    return rule


def united(place: int, sketch: int) -> Rule:
    def rule(merged: list[Any], new: Row) -> None:
        merged[sketch] = sketches.union((merged[sketch], new[sketch]))
        merged[place] = sketches.estimate(merged[sketch])

    return rule


def ranks(values: Sequence[Any]) -> tuple[tuple[int, Any], ...]:
    return tuple(map(rank, values))
