"""Jobs of a service that repeat: each has its own interval, and an error of one is not that of another.

In: coroutine functions with intervals. Out: tasks that run until they are stopped. An error that a cluster
causes is logged once until the job succeeds again, everything else each time with its trace.
Does not know: what the jobs do.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable

from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError, ProtocolError

EXPECTED = (KafkaError, ClientError, ProtocolError, OSError, TimeoutError)
RETRY_S = 1.0
REFRESHES_MISSED_MAX = 3
STALE_S_MIN = 10.0
TOOK_S_MAX = 60.0

Job = Callable[[], Awaitable[None]]


class Jobs:
    """`problems` holds the error of each job that failed last time, by the job's name; `succeeded_s` when
    each succeeded last, and `took_s` how long it took then."""

    def __init__(self, owner: str, log: logging.Logger, now_s: Callable[[], float] = time.monotonic) -> None:
        self.problems: dict[str, str] = {}
        self.succeeded_s: dict[str, float] = {}
        self.took_s: dict[str, float] = {}
        self.now_s = now_s
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
        began_s = self.now_s()
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
        self.note_success(name, self.now_s() - began_s)
        if self.problems.pop(name, None) is not None:
            self._log.info("%s: %s works again", self._owner, name)
        return True

    def note_success(self, name: str, took_s: float = 0.0) -> None:
        """A job that runs for ever calls this whenever it has got on."""
        self.succeeded_s[name] = self.now_s()
        self.took_s[name] = min(took_s, TOOK_S_MAX)

    def why_stale(self, name: str, interval_s: float) -> str | None:
        """Why what a job read is too old to judge by; None if it is not."""
        last_s = self.succeeded_s.get(name)
        if last_s is None:
            return self.problems.get(name, "nothing was read yet")
        age_s = self.now_s() - last_s
        if age_s <= max(REFRESHES_MISSED_MAX * (interval_s + self.took_s[name]), STALE_S_MIN):
            return None
        return (
            f"the last reading is {age_s:.0f} s old: {self.problems.get(name, 'the next one does not end')}"
        )
