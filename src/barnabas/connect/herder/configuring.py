"""Task configurations of running connectors, asked for and published again until the leader has taken them.

In: connectors that have more or less to do, a way to publish configurations. Out: one attempt at a time for
each connector, with growing pauses after failures. Failures are logged; they do not fail the connector,
because most are of the moment: a rebalance, a leader that is gone. Does not know: leaders, topics.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from barnabas.connect.herder.running import RunningConnector

log = logging.getLogger("barnabas.connect")

FIRST_DELAY_S, DELAY_S_MAX = 0.25, 60.0


Configs = Sequence[Mapping[str, str]]


class Configuring:
    def __init__(
        self, publish: Callable[[str, Configs], Awaitable[None]], shown: Callable[[str, str], str]
    ) -> None:
        """`shown` hides a connector's secrets in a text."""
        self._publish = publish
        self._shown = shown
        self._attempts: dict[str, asyncio.Task[None]] = {}
        self._due: set[str] = set()

    def ask(self, running: RunningConnector, known: Configs | None = None, *, delay_s: float = 0.0) -> None:
        """Configure the tasks of a connector soon. What is asked while an attempt runs counts after it.
        `known` are configurations that it gave just now."""
        self._due.add(running.name)
        attempt = self._attempts.get(running.name)
        if attempt is None or attempt.done():
            self._attempts[running.name] = asyncio.create_task(self._run(running, known, delay_s))

    async def _run(self, running: RunningConnector, known: Configs | None, delay_s: float) -> None:
        name = running.name
        await asyncio.sleep(delay_s)
        delay_s = delay_s or FIRST_DELAY_S
        while name in self._due and not running.failure:
            self._due.discard(name)
            try:
                await self._publish(name, await running.task_configs() if known is None else known)
                delay_s = FIRST_DELAY_S
            except Exception as error:
                self.note(name, error, delay_s)
                self._due.add(name)
                await asyncio.sleep(delay_s)
                delay_s = min(2 * delay_s, DELAY_S_MAX)
            known = None

    def note(self, name: str, error: Exception, delay_s: float = FIRST_DELAY_S) -> None:
        log.warning(
            "connector %s: its tasks are not configured; it is tried again in %.0f ms: %s",
            name, delay_s * 1000, self._shown(name, str(error) or type(error).__name__),
        )  # fmt: skip

    def forget(self, name: str) -> None:
        """The connector stops: its tasks are no longer configured from here."""
        self._due.discard(name)
        attempt = self._attempts.pop(name, None)
        if attempt is not None:
            attempt.cancel()
