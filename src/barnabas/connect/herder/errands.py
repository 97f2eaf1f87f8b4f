"""Work at connectors and tasks, one piece at a time for each: places do not wait for one another.

In: coroutines, each for a place. Out: which places are busy, and a call when one is done. Calls into plugins
get threads of their own: they may take as long as they like, and do not hold up the end of the process.
Does not know: what the work is.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from barnabas.connect.herder.worker_state import Place

log = logging.getLogger("barnabas.connect")

T = TypeVar("T")


async def in_own_thread(call: Callable[..., T], *arguments: object) -> T:
    """The result of a call that may block. A caller that is cancelled leaves the thread behind."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(set_outcome: Callable[[Any], None], outcome: object) -> None:
        def follow() -> None:
            if not done.done():
                set_outcome(outcome)

        if not loop.is_closed():
            loop.call_soon_threadsafe(follow)

    def run() -> None:
        try:
            found = call(*arguments)
        except BaseException as error:
            tell(done.set_exception, error)
        else:
            tell(done.set_result, found)

    threading.Thread(target=run, name=f"connect-{getattr(call, '__name__', 'call')}", daemon=True).start()
    return await done


class Errands:
    def __init__(self, on_done: Callable[[Place, bool], None]) -> None:
        """`on_done` gets a place, and whether the work at it failed."""
        self._under_way: dict[Place, asyncio.Task[None]] = {}
        self._on_done = on_done

    def __contains__(self, place: Place) -> bool:
        return place in self._under_way

    def __len__(self) -> int:
        return len(self._under_way)

    def begin(self, place: Place, work: Coroutine[Any, Any, None]) -> None:
        """Begin with the work at a place that is not busy."""
        task = self._under_way[place] = asyncio.create_task(work)
        task.add_done_callback(lambda ended: self._ended(place, ended))

    def _ended(self, place: Place, ended: asyncio.Task[None]) -> None:
        self._under_way.pop(place, None)
        error = None if ended.cancelled() else ended.exception()
        if error is not None:
            log.error("the worker could not follow a change of %s-%s", *place, exc_info=error)
        self._on_done(place, error is not None)

    def interrupt(self, place: Place) -> None:
        """End the work at a place: something else is to be done there."""
        self._under_way[place].cancel()

    async def end(self) -> None:
        """Interrupt everything."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
