"""Jobs of a service that repeat: each has its own interval, and an error of one is not that of another.

In: coroutine functions with intervals. Out: tasks that run until they are stopped. An error that a cluster
causes is logged once until the job succeeds again; everything else ends the job with its trace in the log.
Does not know: what the jobs do.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError, ProtocolError

EXPECTED = (KafkaError, ClientError, ProtocolError, OSError, TimeoutError)
RETRY_S = 1.0

Job = Callable[[], Awaitable[None]]


class Jobs:
    """`problems` holds the error of each job that failed last time, by the job's name."""

    def __init__(self, owner: str, log: logging.Logger) -> None:
        self.problems: dict[str, str] = {}
        self._owner = owner
        self._log = log
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, name: str, job: Job, interval_s: float, *, at_once: bool = True) -> None:
        self._tasks.append(asyncio.create_task(self._repeat(name, job, interval_s, at_once), name=name))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _repeat(self, name: str, job: Job, interval_s: float, at_once: bool) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + (0.0 if at_once else interval_s)
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.sleep(max(0.0, due - loop.time()))
            failed = not await self.run(name, job)
            due = max(due + interval_s, loop.time()) if not failed else loop.time() + max(interval_s, RETRY_S)

    async def run(self, name: str, job: Job) -> bool:
        """Run a job once. Returns whether it succeeded."""
        try:
            await job()
        except EXPECTED as error:
            text = str(error) or type(error).__name__
            if self.problems.get(name) != text:
                self._log.warning("%s: %s failed, it is tried again: %s", self._owner, name, text)
            self.problems[name] = text
            return False
        except Exception:
            self._log.exception("%s: %s failed", self._owner, name)
            self.problems[name] = "an unexpected error, which is in the log"
            return False
        if self.problems.pop(name, None) is not None:
            self._log.info("%s: %s works again", self._owner, name)
        return True
