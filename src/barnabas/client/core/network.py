"""The port through which the core reaches the world: connections, the clock, pauses.

The core is written as coroutines. On the asyncio face they suspend as usual. On the blocking face every
awaited call returns only when it is done, so that a coroutine runs to its end without suspending
(`blocking.run`).
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from barnabas.client.core.address import Address
from barnabas.security.clients.client_security import PLAINTEXT, ClientSecurity

if TYPE_CHECKING:
    from barnabas.client.core.connection import ConnectionCore

T = TypeVar("T")

CONNECT_TIMEOUT_MS = 10_000
REQUEST_TIMEOUT_MS = 30_000


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Common to all connections of a client."""

    client_id: str = "barnabas"
    connect_timeout_ms: float = CONNECT_TIMEOUT_MS
    request_timeout_ms: float = REQUEST_TIMEOUT_MS
    security: ClientSecurity = PLAINTEXT


class Network(Protocol):
    def now(self) -> float:
        """Seconds of a clock that never goes back."""

    async def sleep(self, seconds: float) -> None: ...

    def uniform(self, low: float, high: float) -> float:
        """A random number: retries of many clients must not come together."""

    async def gather(self, coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """The results of all, run side by side where the face can."""

    async def connect(self, address: Address, settings: ConnectionSettings) -> ConnectionCore:
        """A connection whose handshake is done, or ConnectError."""
