"""Other nodes, as the quorum sees them: somebody at an address who answers requests, or does not.

In: an address, a request. Out: its answer, or `PeerUnreachable`.
Does not know: connections, who the nodes are.
"""

from __future__ import annotations

from typing import Any, Protocol

from barnabas.protocol import Message
from barnabas.settings.quorum import Address


class PeerUnreachable(Exception):
    """No answer: there is no connection, it broke, or time ran out. The request may have arrived."""


class Peers(Protocol):
    async def ask(self, address: Address, request: Message, timeout_ms: float, lane: str = "") -> Any:
        """The answer of the node there. Requests of different lanes do not wait for each other."""

    async def close(self) -> None: ...
