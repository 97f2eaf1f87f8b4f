"""Portions: how much of a long request is looked at in one step (see `metadata.steps`).

In: sequences of partitions, groups or records. Out: slices of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
PORTION = 200  # partitions, groups or records: a fraction of a millisecond


def portions(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """The items in slices of at most a portion."""
    if len(items) <= PORTION:
        yield items
        return
    for start in range(0, len(items), PORTION):
        yield items[start : start + PORTION]
