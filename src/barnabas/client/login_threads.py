"""Threads for logins that wait for others: a key distribution centre, an identity provider.

They are shared by all connections of a process. A service that is gone may keep all of them for its timeout,
and then other logins wait; nothing else does.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
THREADS = 4


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="barnabas-client-login")


async def run_aside(work: Callable[..., T], *arguments: object) -> T:
    """Do the work in one of the threads. A simulated loop does it inline."""
    return await asyncio.get_running_loop().run_in_executor(_pool(), work, *arguments)
