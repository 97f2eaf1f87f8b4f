"""Results that many requests need: made once, kept within a bound, some of them only for a while.

In: a key, and how to make its result. Out: the result. Requests for the same key wait for one making; a
request that is cancelled does not stop it. Failures are not kept, except those whose kind is named.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Kept(Generic[K, V]):
    def __init__(
        self,
        count_max: int,
        *,
        seconds: float | None = None,
        failures: type[Exception] | tuple[()] = (),
        failure_seconds: float = 0.0,
    ) -> None:
        self._count_max = count_max
        self._seconds = seconds
        self._failures = failures
        self._failure_seconds = failure_seconds
        self._results: OrderedDict[K, tuple[float | None, asyncio.Future[V]]] = OrderedDict()

    def ready(self, key: K) -> V | None:
        """The result if it is there without waiting."""
        until, making = self._results.get(key, (None, None))
        if making is None or not making.done() or making.exception() is not None:
            return None
        if until is not None and asyncio.get_running_loop().time() >= until:
            return None
        return making.result()

    async def get(self, key: K, make: Callable[[], Coroutine[Any, Any, V]]) -> V:
        now = asyncio.get_running_loop().time()
        until, making = self._results.get(key, (None, None))
        if making is None or (until is not None and now >= until):
            making = asyncio.ensure_future(make())
            self._results[key] = (None if self._seconds is None else now + self._seconds, making)
            making.add_done_callback(lambda done: self._made(key, done))
        self._results.move_to_end(key)
        while len(self._results) > self._count_max:
            self._results.popitem(last=False)
        return await asyncio.shield(making)

    def _made(self, key: K, done: asyncio.Future[V]) -> None:
        """Forget failures; reading the exception also tells asyncio that somebody saw it."""
        error = None if done.cancelled() else done.exception()
        if error is None and not done.cancelled():
            return
        if self._results.get(key, (None, None))[1] is not done:
            return
        if error is not None and isinstance(error, self._failures):
            until = asyncio.get_running_loop().time() + self._failure_seconds
            self._results[key] = (until, done)
        else:
            del self._results[key]
