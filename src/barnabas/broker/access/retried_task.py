"""A background task of the node that uses the brokers as a client, and goes on after their errors.

In: an attempt, which runs until an error or returns, and a function that logs the error. Out: attempts, with
a growing pause after each failure, until the node stops. Does not know: what an attempt does.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError
from barnabas.security.errors import SecuritySettingsError

RETRY_S, RETRY_S_MAX = 1.0, 30.0
Warn = Callable[[Exception, float], None]  # the error, and the seconds until the next attempt


class RetriedTask:
    def __init__(
        self, attempt: Callable[[], Awaitable[None]], warn: Callable[[Exception, float], None]
    ) -> None:
        """`warn` gets the error, and after how many seconds the next attempt follows."""
        self._attempt = attempt
        self._warn = warn
        self._retry_s = RETRY_S
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def succeeded(self) -> None:
        """An attempt that goes on says that the brokers do what it asks: the next failure waits shortly."""
        self._retry_s = RETRY_S

    async def _run(self) -> None:
        while True:
            try:
                await self._attempt()
                self.succeeded()
            except (KafkaError, ClientError, SecuritySettingsError, OSError) as error:
                self._warn(error, self._retry_s)
                await asyncio.sleep(self._retry_s)
                self._retry_s = min(2 * self._retry_s, RETRY_S_MAX)
