"""A simulated client: a process with connections to its node, and a job that restarts after a kill.

In: a job, requests. Out: responses, or None if the result of a request is unknown (the connection was lost,
or the response timed out).
Does not know: what the requests mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from barnabas.client.cluster import Cluster
from barnabas.client.core.address import Address
from barnabas.client.core.errors import ClientError
from barnabas.protocol import Message
from barnabas.security.clients.client_security import PLAINTEXT, ClientSecurity
from barnabas.simulation.world.process import Process
from barnabas.simulation.world.world import World

R = TypeVar("R", bound=Message)
CONNECT_TIMEOUT_MS = 2_000
REQUEST_TIMEOUT_MS = 4_000
RETRY_S = 0.1

Job = Callable[["SimulatedClient"], Awaitable[None]]


class SimulatedClient:
    """Every process of the client runs `job` from its beginning. State that must survive a kill belongs to
    the harness."""

    process: Process

    def __init__(
        self,
        world: World,
        bootstrap: Sequence[Address],
        name: str,
        job: Job,
        security: ClientSecurity = PLAINTEXT,
    ) -> None:
        self.world = world
        self.host = name
        self.rng = world.rng(name)
        self.lives = 0
        self._bootstrap = bootstrap
        self._job = job
        self._security = security
        self._start()

    def _start(self) -> None:
        self.lives += 1
        process = self.process = self.world.process(self.host)
        process.on_end.append(lambda: self.world.network.killed(process))
        self.cluster = Cluster(
            self._bootstrap,
            client_id=self.host,
            connect_timeout_ms=CONNECT_TIMEOUT_MS,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            security=self._security,
        )
        process.spawn(self._run())

    async def _run(self) -> None:
        try:
            await self._job(self)
        except Exception as error:
            self.world.fail(f"{self.host}: {type(error).__name__}: {error}", error)

    def kill(self, down_s: float) -> None:
        """Kill the process; it restarts after a while. Call this in a callback of the harness."""
        if self.process.is_alive:
            self.process.end()
            self.world.loop.call_later(down_s, self._start)

    async def ask(
        self,
        request: Message,
        response_type: type[R],
        *,
        purpose: str = "",
        timeout_ms: float | None = None,
        version_max: int | None = None,
    ) -> R | None:
        """Send a request and return the response; None if its result is unknown."""
        return await self.ask_at(
            self._bootstrap[0],
            request,
            response_type,
            purpose=purpose,
            timeout_ms=timeout_ms,
            version_max=version_max,
        )

    async def ask_at(
        self,
        address: Address,
        request: Message,
        response_type: type[R],
        *,
        purpose: str = "",
        timeout_ms: float | None = None,
        version_max: int | None = None,
    ) -> R | None:
        """Send a request to this broker."""
        try:
            connection = await self.cluster.connection_to(address, purpose)
            return await connection.send(
                request, response_type, timeout_ms=timeout_ms, version_max=version_max
            )
        except ClientError:
            return None

    async def leader_of(self, topic: str, partition: int) -> Address | None:
        """The broker that leads a partition, as far as this client knows."""
        return self._bootstrap[0]

    def forget_leader(self, topic: str, partition: int) -> None:
        """Ask for the leader again before the next request to it."""

    async def ask_until_answered(
        self, request: Message, response_type: type[R], accepts: Callable[[R], Any]
    ) -> R:
        """Repeat a request until `accepts` is true for the response. Faults are limited in time."""
        while True:
            response = await self.ask(request, response_type)
            if response is not None and accepts(response):
                return response
            await asyncio.sleep(RETRY_S)
