"""The thread port: slow work (fsync, cold reads, recovery) beside the loop, in a bounded pool."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
PAUSE_S = 0.00005  # long enough for another thread to take the interpreter's lock


class Threads:
    """`run` is awaited on the loop; a simulated loop runs the work inline instead."""

    __slots__ = ("_count", "_loop", "_loop_thread", "_pool")

    def __init__(self, loop: asyncio.AbstractEventLoop, count: int) -> None:
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._count = count
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="barnabas")
        loop.set_default_executor(self._pool)

    def start_all(self) -> None:
        """Start the threads now: later the system may refuse to, and work would be lost. RuntimeError when it
        does."""
        all_there = threading.Barrier(self._count + 1)
        try:
            for _ in range(self._count):
                self._pool.submit(all_there.wait)
        except BaseException:
            all_there.abort()
            raise
        all_there.wait()

    def run(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return self._loop.run_in_executor(self._pool, work, *arguments)

    def pause(self) -> None:
        """Let the loop run: long work in plain Python calls this every fraction of a millisecond, or the loop
        gets the interpreter's lock every five milliseconds only. Does nothing where work is done inline."""
        if threading.get_ident() != self._loop_thread:
            time.sleep(PAUSE_S)

    def close(self) -> None:
        self._pool.shutdown(wait=True)
