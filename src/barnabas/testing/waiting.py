"""Waiting in tests until a condition is true.

In: a condition that is evaluated repeatedly. Returns when it is true. Otherwise raises an error that names
what was awaited. No other code of the tests sleeps between two checks.
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
    """Wait until the condition is true. `what` is a text for the error, or a function that returns one."""
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
    """Like `wait_until`, on an event loop. The condition may be awaitable."""
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
