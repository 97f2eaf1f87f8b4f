"""Work in steps: a generator that yields wherever its caller may do something else first.

In: nothing. Out: the type, and the way to do all steps at once. A host that serves others between two steps
is `runtime.pieces`; decisions, packing and replaying of thousands of records are written as steps for it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]


def at_once(steps: Steps[T]) -> T:
    """Do all the work now: where nobody waits, or nobody may see it half done."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
