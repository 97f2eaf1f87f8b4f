"""The port through which the quorum sends requests to other nodes.

In: an address, a request. Out: the response, or `PeerUnreachable`.
Does not know: connections, the nodes' identities.
"""

from __future__ import annotations

from typing import Any, Protocol

from barnabas.protocol import Message
from barnabas.settings.quorum import Address


class PeerUnreachable(Exception):
    """No response: there is no connection, it broke, or the timeout passed. The request may have arrived."""


class Peers(Protocol):
    async def send_request(
        self, address: Address, request: Message, timeout_ms: float, lane: str = ""
    ) -> Any:
        """Send a request to the node at `address` and return its response. Requests of different lanes do not
        wait for each other."""

    async def close(self) -> None: ...
