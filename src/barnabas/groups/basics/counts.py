"""Counts by name, without names that count nothing: how many members subscribe to a topic, and the like."""

from __future__ import annotations

from collections.abc import Iterable


def add(counts: dict[str, int], name: str, by: int) -> None:
    count = counts.get(name, 0) + by
    if count > 0:
        counts[name] = count
    else:
        counts.pop(name, None)


def add_all(counts: dict[str, int], names: Iterable[str], by: int) -> None:
    for name in names:
        add(counts, name, by)
