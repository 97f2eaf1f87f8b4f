"""Truncations of this broker's logs: threads work on the files, the event loop goes on.

In: truncations that have begun (`storage.logs.truncation`). Out: usable logs, and calls of
`Truncation.when_done`. Meanwhile nothing else uses the log: it is not fetched, led, moved or deleted; that
work waits for `when_done`.
Does not know: why and how a log is truncated.
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
        self.count = 0  # since the broker started

    def start(self, truncation: Truncation) -> None:
        """Do the work in a thread, then make the log usable again."""
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
        """Wait for running truncations before their logs are closed."""
        while self._running:
            await asyncio.wait(list(self._running))
