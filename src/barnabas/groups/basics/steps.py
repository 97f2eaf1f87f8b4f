"""Portions: how much of a long request one step handles (see `metadata.steps`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
PORTION = 200  # partitions, groups or records: a fraction of a millisecond of work


def portions(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Slices of at most PORTION items."""
    if len(items) <= PORTION:
        yield items
        return
    for start in range(0, len(items), PORTION):
        yield items[start : start + PORTION]
