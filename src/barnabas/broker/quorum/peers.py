"""Connections to other nodes: one for each address and lane, opened when needed, reopened when broken.

In: addresses, requests. Out: responses, in the newest version that both sides support, or `PeerUnreachable`.
Does not know: what the requests mean, which node to try next.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from barnabas.broker.quorum.channel_traffic import ChannelTraffic
from barnabas.client.asyncio_network import Connection, connect
from barnabas.client.core.address import Address as ClientAddress
from barnabas.client.core.errors import AuthenticationError, ClientError
from barnabas.client.core.network import ConnectionSettings
from barnabas.protocol import KafkaError, Message, ProtocolError, apis
from barnabas.quorum.peers import PeerUnreachable
from barnabas.security.clients.client_security import ClientSecurity
from barnabas.security.errors import SecuritySettingsError
from barnabas.settings.quorum import Address

log = logging.getLogger("barnabas.peers")
CONNECTIONS_MAX = 10_000
REFUSALS_TOLD_EVERY_S = 60.0


class Connections:
    """See `runtime.peers.Peers`."""

    def __init__(
        self, client_id: str, connect_timeout_ms: float, security: Callable[[], ClientSecurity]
    ) -> None:
        self._client_id = client_id
        self._connect_timeout_ms = connect_timeout_ms
        self._security = security  # of the next connection
        self._refused_at: float | None = None  # when a refused login was logged last
        self._open: dict[tuple[Address, str], Connection] = {}
        self._opening: dict[tuple[Address, str], asyncio.Task[Connection]] = {}
        self._closing: dict[asyncio.Task[None], None] = {}
        self._is_closed = False
        self._traffic: dict[str, ChannelTraffic] = {}

    def traffic(self, lane: str) -> ChannelTraffic:
        """The traffic of all connections of a lane."""
        found = self._traffic.get(lane)
        if found is None:
            found = self._traffic[lane] = ChannelTraffic()
        return found

    async def send_request(
        self, address: Address, request: Message, timeout_ms: float, lane: str = ""
    ) -> Any:
        key = request.schema.key
        assert key is not None
        traffic = self.traffic(lane)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                connection = await self._connection(address, lane)
                traffic.requests += 1
                response = await connection.send(request, apis.response_class(key), timeout_ms=timeout_ms)
                traffic.responses += 1
                return response
        except (ClientError, TimeoutError, ProtocolError, KafkaError) as error:
            self._drop(address, lane)
            raise PeerUnreachable(str(error) or "no response in time") from None

    async def version_for(self, address: Address, request: type[Message], lane: str = "") -> int:
        """Return the version that `send_request` would use."""
        try:
            return (await self._connection(address, lane)).version_for(request)
        except (ClientError, ProtocolError, KafkaError) as error:
            raise PeerUnreachable(str(error)) from None

    async def _connection(self, address: Address, lane: str) -> Connection:
        at = address, lane
        found = self._open.get(at)
        if found is not None:
            if found.is_open:
                return found
            self.traffic(lane).lost(found)
        if self._is_closed:
            raise PeerUnreachable("this node is stopping")
        opening = self._opening.get(at)
        if opening is None:
            opening = asyncio.get_running_loop().create_task(self._connect(address, self.traffic(lane)))
            self._opening[at] = opening
            opening.add_done_callback(lambda done: self._connected(at, done))
        return await asyncio.shield(opening)

    async def _connect(self, address: Address, traffic: ChannelTraffic) -> Connection:
        timeout_ms = self._connect_timeout_ms
        try:
            settings = ConnectionSettings(self._client_id, timeout_ms, timeout_ms, self._security())
            connection = await connect(ClientAddress(address.host, address.port), settings)
            traffic.connected(connection)
            return connection
        except (AuthenticationError, SecuritySettingsError) as error:
            traffic.logins_failed += isinstance(error, AuthenticationError)
            now = asyncio.get_running_loop().time()
            if self._refused_at is None or now - self._refused_at >= REFUSALS_TOLD_EVERY_S:
                self._refused_at = now
                log.warning("no connection to the node at %s:%d: %s", address.host, address.port, error)
            raise PeerUnreachable(str(error)) from None

    def _connected(self, at: tuple[Address, str], done: asyncio.Task[Connection]) -> None:
        self._opening.pop(at, None)
        if done.cancelled() or done.exception() is not None:
            return
        if self._is_closed or len(self._open) >= CONNECTIONS_MAX:
            self._close(done.result(), at[1])
        else:
            self._open[at] = done.result()

    def _drop(self, address: Address, lane: str) -> None:
        """Close a connection after a failure: a late response could be taken for that of the next request."""
        found = self._open.pop((address, lane), None)
        if found is not None:
            self._close(found, lane)

    def _close(self, connection: Connection, lane: str) -> None:
        self.traffic(lane).lost(connection)
        task = asyncio.get_running_loop().create_task(connection.close())
        self._closing[task] = None
        task.add_done_callback(lambda done: self._closing.pop(done, None))

    async def close(self) -> None:
        self._is_closed = True
        for opening in list(self._opening.values()):
            opening.cancel()
        for (_, lane), connection in self._open.items():
            self._close(connection, lane)
        self._open.clear()
        if self._closing:
            await asyncio.wait(list(self._closing))
