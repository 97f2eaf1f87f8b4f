"""Waiting in tests: for a condition, never for luck.

In: a question that is asked again and again. Out: nothing, once the answer is yes; an error that says what
was waited for when it never is. The one place that pauses between two looks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

LOOK_S = 0.01
PATIENCE_S = 10.0


def wait_until(
    condition: Callable[[], object], seconds: float = PATIENCE_S, what: str | Callable[[], str] = ""
) -> None:
    """Until the condition holds. `what` says what was waited for, or asks how far it came."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(said(what, seconds))
        time.sleep(LOOK_S)


async def until(
    condition: Callable[[], object | Awaitable[object]],
    seconds: float = PATIENCE_S,
    what: str | Callable[[], str] = "",
) -> None:
    """The same on a loop, where others go on meanwhile; the condition may be one that is awaited."""
    deadline = time.monotonic() + seconds
    while not await holds(condition):
        if time.monotonic() > deadline:
            raise TimeoutError(said(what, seconds))
        await asyncio.sleep(LOOK_S)


async def holds(condition: Callable[[], object | Awaitable[object]]) -> bool:
    answer = condition()
    return bool(await answer if isinstance(answer, Awaitable) else answer)


def said(what: str | Callable[[], str], seconds: float) -> str:
    told = what if isinstance(what, str) else what()
    return f"{told or 'it'}: not after {seconds:g} s"
