"""Truncations of this broker's logs: the work on files runs in threads, the loop goes on.

In: truncations that have begun (`storage.truncation`). Out: logs that are whole again, and callers told.
A log is in no other hands meanwhile: it is not fetched into, not led, not moved, not deleted; each of those
asks the truncation to be told when it is done (`Truncation.when_done`).
Does not know: why a log is cut, how.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.runtime.shortage import RETRY_S, is_shortage

if TYPE_CHECKING:
    from barnabas.runtime.threads import Threads
    from barnabas.storage.logs.truncation import Truncation


class Truncations:
    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._running: dict[asyncio.Task[None], None] = {}
        self.count = 0  # in this life of the broker

    def start(self, truncation: Truncation) -> None:
        """Do the work beside the loop, then make the log usable again."""
        self.count += 1
        task = asyncio.get_running_loop().create_task(self._run(truncation))
        self._running[task] = None
        task.add_done_callback(self._running.pop)

    async def _run(self, truncation: Truncation) -> None:
        while True:
            try:
                await self._threads.run(truncation.run)
            except RuntimeError as error:
                if not is_shortage(error):  # of threads
                    raise
            else:
                if not truncation.can_retry:
                    break
            await asyncio.sleep(RETRY_S)
        truncation.end()

    async def close(self) -> None:
        """Wait for all that have begun: their logs are about to be closed."""
        while self._running:
            await asyncio.wait(list(self._running))
