"""Work in steps: a generator that yields wherever its caller may do other work.

In: nothing. Out: the type, and `at_once`, which does all steps at once. `runtime.pieces` runs other work
between the steps. Decisions, packing and replay of thousands of records are written as steps for it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]


def at_once(steps: Steps[T]) -> T:
    """Do all the work now: when nobody waits for it, or when nobody may see it half done."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
