"""The server: listening sockets, and who may connect.

In: endpoints from the settings. Out: a `Channel` for every connection that the limits admit:
`max.connections` (further ones wait unread for a free place, as a full accept queue would make them),
`max.connections.per.ip` (closed at once), and `connections.max.idle.ms`. Does not know: requests.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from typing import TYPE_CHECKING

from barnabas.broker.channel import Channel
from barnabas.broker.routes import Router

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.tick import Tick
    from barnabas.settings.listeners import EndPoint

log = logging.getLogger("barnabas.server")
IDLE_CHECK_SECONDS_MAX = 30.0


class ConnectionLimits:
    """Counts of connections, per address and in total, and what is allowed."""

    __slots__ = ("_overrides", "_per_ip", "idle_seconds", "per_host", "total", "total_max")

    def __init__(self, *, total_max: int, per_ip_max: int, overrides: dict[str, int], idle_ms: int) -> None:
        self.total_max = total_max
        self.total = 0
        self.per_host: dict[str, int] = {}
        self.idle_seconds = idle_ms / 1000 if idle_ms > 0 else float("inf")
        self._per_ip = per_ip_max
        self._overrides = overrides

    def allowed_from(self, host: str) -> int:
        return self._overrides.get(host, self._per_ip)


class Listener:
    """One listening address and its channels."""

    def __init__(
        self, endpoint: EndPoint, kind: str, broker: Broker, tick: Tick, limits: ConnectionLimits
    ) -> None:
        self.endpoint = endpoint
        self.name = endpoint.name
        self.kind = kind  # "broker" or "controller": which APIs are served
        self.broker = broker
        self.tick = tick
        self.limits = limits
        self.loop = asyncio.get_running_loop()
        self.router = Router(kind, broker.metrics)
        self.frame_bytes_max: int = broker.settings["socket.request.max.bytes"]
        self.channels: dict[Channel, None] = {}
        self.port = endpoint.port
        self._waiting: deque[Channel] = deque()
        self._server: asyncio.Server | None = None
        self._idle_check: asyncio.TimerHandle | None = None

    async def open(self, bound: socket.socket) -> None:
        """Accept connections on a socket that is bound already."""
        backlog: int = self.broker.settings["socket.listen.backlog.size"]
        self._server = await self.loop.create_server(lambda: Channel(self), sock=bound, backlog=backlog)
        self.port = self._server.sockets[0].getsockname()[1]
        self._schedule_idle_check()

    async def close(self) -> None:
        """Stop listening and close every connection after what it is owed has been written."""
        if self._idle_check is not None:
            self._idle_check.cancel()
        if self._server is not None:
            self._server.close()
        for channel in list(self.channels):
            channel.close()

    # -- admission -------------------------------------------------------------------------------

    def admit(self, channel: Channel) -> bool:
        """Register the connection. False: it has to wait for a place before it is read."""
        limits = self.limits
        here = limits.per_host.get(channel.host, 0) + 1
        limits.per_host[channel.host] = here
        limits.total += 1
        self.channels[channel] = None
        self.set_buffers(channel)
        if here > limits.allowed_from(channel.host):
            channel.refuse(
                f"more than {limits.allowed_from(channel.host)} connections (max.connections.per.ip)"
            )
        elif limits.total > limits.total_max:
            if len(self._waiting) >= self.broker.settings["socket.listen.backlog.size"]:
                channel.refuse(f"more than {limits.total_max} connections (max.connections)")
            else:
                self._waiting.append(channel)
                return False
        return True

    def dismiss(self, channel: Channel) -> None:
        limits = self.limits
        if self.channels.pop(channel, channel) is not None:
            return
        limits.total -= 1
        left = limits.per_host[channel.host] - 1
        if left:
            limits.per_host[channel.host] = left
        else:
            del limits.per_host[channel.host]
        if channel in self._waiting:
            self._waiting.remove(channel)
        while self._waiting and limits.total - len(self._waiting) < limits.total_max:
            self._waiting.popleft().let_go()

    def set_buffers(self, channel: Channel) -> None:
        """Socket buffers are the kernel's to size unless the settings name them."""
        plain = channel.transport.get_extra_info("socket")
        if plain is None:
            return
        for option, name in (
            (socket.SO_SNDBUF, "socket.send.buffer.bytes"),
            (socket.SO_RCVBUF, "socket.receive.buffer.bytes"),
        ):
            if self.broker.settings.is_set(name) and self.broker.settings[name] > 0:
                plain.setsockopt(socket.SOL_SOCKET, option, self.broker.settings[name])

    # -- idleness --------------------------------------------------------------------------------

    def _schedule_idle_check(self) -> None:
        delay = min(self.limits.idle_seconds / 2, IDLE_CHECK_SECONDS_MAX)
        self._idle_check = self.loop.call_later(delay, self._close_idle)

    def _close_idle(self) -> None:
        oldest = self.loop.time() - self.limits.idle_seconds
        for channel in list(self.channels):
            if channel.last_active < oldest and not channel.is_busy:
                channel.refuse(f"idle for {self.limits.idle_seconds:.0f} s (connections.max.idle.ms)")
        self._schedule_idle_check()
