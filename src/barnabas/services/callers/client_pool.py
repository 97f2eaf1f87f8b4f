"""Clients of callers: one for each, bounded, closed when idle.

In: a function that makes a client for a caller, one that closes it. Out: clients for the time of a request.
When the pool is full, the client that was idle longest is closed; when all are in use, ApiError 503.
Does not know: what a client is.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar

from barnabas.services.caller import Caller
from barnabas.services.errors import ApiError

T = TypeVar("T")
Key = tuple[str, str, bytes]
SWEEPS_PER_IDLE_TIME = 4

log = logging.getLogger(__name__)


class Entry(Generic[T]):
    __slots__ = ("client", "idle_since", "users")

    def __init__(self, client: asyncio.Task[T]) -> None:
        self.client = client
        self.users = 0
        self.idle_since = 0.0


class ClientPool(Generic[T]):
    def __init__(
        self,
        make: Callable[[Caller], Awaitable[T]],
        close: Callable[[T], Awaitable[None]],
        *,
        clients_max: int,
        idle_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._close = close
        self._clients_max = clients_max
        self._idle_s = idle_s
        self._clock = clock
        self._entries: OrderedDict[Key, Entry[T]] = OrderedDict()
        self._sweeper: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    @contextlib.asynccontextmanager
    async def use(self, caller: Caller) -> AsyncIterator[T]:
        """The client of this caller, which nobody closes before the block ends."""
        key = key_of(caller)
        if key not in self._entries:
            await self._make_room()
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = Entry(asyncio.ensure_future(self._made(caller)))
        self._entries.move_to_end(key)
        entry.users += 1
        try:
            try:
                client = await asyncio.shield(entry.client)
            except Exception:
                if self._entries.get(key) is entry:
                    del self._entries[key]
                raise
            yield client
        finally:
            entry.users -= 1
            entry.idle_since = self._clock()

    async def sweep(self) -> None:
        """Close clients that were idle for too long."""
        limit = self._clock() - self._idle_s
        for key, entry in [*self._entries.items()]:
            if entry.users == 0 and entry.idle_since <= limit:
                await self._remove(key)

    def start(self) -> None:
        """Sweep from time to time, until `close`."""
        self._sweeper = asyncio.ensure_future(self._sweep_always())

    async def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for key in [*self._entries]:
            await self._remove(key)

    async def _made(self, caller: Caller) -> T:
        return await self._make(caller)

    async def _make_room(self) -> None:
        while len(self._entries) >= self._clients_max:
            idle = next((key for key, entry in self._entries.items() if entry.users == 0), None)
            if idle is None:
                raise ApiError(
                    503,
                    503,
                    f"the service is busy: {len(self._entries)} callers have clients; try again",
                    {"retry-after": "1"},
                )
            await self._remove(idle)

    async def _remove(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        if not entry.client.done():
            entry.client.cancel()
            return
        if entry.client.cancelled() or entry.client.exception() is not None:
            return
        try:
            await self._close(entry.client.result())
        except Exception:
            log.exception("a client of %s did not close in order", key[1])

    async def _sweep_always(self) -> None:
        while True:
            await asyncio.sleep(self._idle_s / SWEEPS_PER_IDLE_TIME)
            await self.sweep()


def key_of(caller: Caller) -> Key:
    """Another password is another client: the old one may be logged in with a password that was changed."""
    return str(caller.kind), caller.principal.name, hashlib.sha256(caller.secret.encode()).digest()
