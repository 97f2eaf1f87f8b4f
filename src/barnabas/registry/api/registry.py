"""The registry as endpoints see it: the state to read, changes to ask for, threads for long work.

In: commands of endpoints. Out: replies once the change is stored, or the primary's response. Parsing and
comparing run in a few threads, so that other requests do not wait for them; changes are decided one by one.
Does not know: paths, bodies, the log.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from barnabas.registry.api.body_cache import BodyCache
from barnabas.registry.api.media_types import RESPONSE_TYPES
from barnabas.registry.log.changes import Changes
from barnabas.registry.state.commands import Command, Decision
from barnabas.registry.state.deciding import Decider

T = TypeVar("T")
READERS = 2  # threads; more would only take turns


@dataclass(slots=True)
class ApiSettings:
    """`is_classic`: responses have only the fields that clients before 8.0 know."""

    is_classic: bool = False
    schema_limit: tuple[int, int] = (1000, 1000)  # unless `limit` says it, and at most
    subject_limit: tuple[int, int] = (20_000, 20_000)
    version_limit: tuple[int, int] = (20_000, 20_000)
    schema_bytes_max: int = 4 << 20
    group_id: str = "schema-registry"
    cluster_id: str = ""  # of Kafka, known once the brokers are reached
    version: str = ""
    media_types: tuple[str, ...] = RESPONSE_TYPES  # of responses, in the order of preference


class RegistryApi:
    def __init__(
        self,
        decider: Decider,
        changes: Changes,
        settings: ApiSettings | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.state = decider.state
        self.reader = decider.reader
        self.settings = settings or ApiSettings()
        self.bodies = BodyCache()
        self._decider = decider
        self._changes = changes
        self._clock = clock
        self._readers = ThreadPoolExecutor(READERS, "registry-reader")
        self._writer = ThreadPoolExecutor(1, "registry-writer")

    async def work(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Run a function that may take long in a thread. It reads the state, and changes nothing."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, lambda: function(*arguments, **named))

    async def submit(self, request: Request, command: Command) -> Any:
        """The reply to a command, or the primary's response where this node is not the primary."""
        response = await self._changes.forwarded(request)
        return response if response is not None else await self.change(command)

    async def forwarded(self, request: Request) -> Response | None:
        return await self._changes.forwarded(request)

    async def change(self, command: Command) -> Any:
        async def decide() -> Decision[Any]:
            loop = asyncio.get_running_loop()
            now_ms = int(self._clock() * 1000)
            return await loop.run_in_executor(self._writer, self._decider.decide, command, now_ms)

        return await self._changes.change(decide)

    def close(self) -> None:
        """End the threads. Work that waits for one is dropped."""
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._writer.shutdown(wait=False, cancel_futures=True)
