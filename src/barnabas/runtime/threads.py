"""The thread port: slow work (fsync, cold reads, recovery) beside the loop, in a bounded pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Threads:
    """`run` is awaited on the loop; a simulated loop runs the work inline instead."""

    __slots__ = ("_loop", "_pool")

    def __init__(self, loop: asyncio.AbstractEventLoop, count: int) -> None:
        self._loop = loop
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="barnabas")
        loop.set_default_executor(self._pool)

    def run(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return self._loop.run_in_executor(self._pool, work, *arguments)

    def close(self) -> None:
        self._pool.shutdown(wait=True)
