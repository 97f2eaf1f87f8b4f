"""Decisions in steps: whoever runs them may serve others between two of them, or take them at once.

In: a generator that yields where its work may be interrupted. Out: what it returns.
Does not know: how long a step takes, what happens between two of them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]
PORTION = 200  # partitions, groups or records: a fraction of a millisecond


def at_once(steps: Steps[T]) -> T:
    try:
        while True:
            next(steps)
    except StopIteration as done:
        result: T = done.value
        return result


def portions(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """The items in slices of at most a portion."""
    if len(items) <= PORTION:
        yield items
        return
    for start in range(0, len(items), PORTION):
        yield items[start : start + PORTION]
