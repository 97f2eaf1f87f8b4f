"""The server: listening sockets, and who may connect.

In: endpoints from the settings. Out: a `Channel` for every connection that the limits admit. Connections that
exceed `max.connections` (of the broker or the listener) or `max.connection.creation.rate` wait unread for
their turn, as in a full accept queue; those over `max.connections.per.ip` are closed at once, those over
their address's rate after the time that the quota asks for; idle ones after `connections.max.idle.ms`.
Does not know: requests.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.broker.channel import Channel
from barnabas.broker.connection_limits import ConnectionLimits
from barnabas.broker.routes import Router

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.tick import Tick
    from barnabas.settings.listeners import EndPoint

log = logging.getLogger("barnabas.server")
IDLE_CHECK_SECONDS_MAX = 30.0


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
        self.router = Router(kind, broker.metrics, broker.settings["unstable.api.versions.enable"])
        self.frame_bytes_max: int = broker.settings["socket.request.max.bytes"]
        self.channels: dict[Channel, None] = {}
        self.port = endpoint.port
        self.neighbours: Sequence[Listener] = ()  # that share the limits
        self._arriving: deque[Channel] = deque()  # connected, and not yet let in
        self._next_at: float | None = None  # when the first of them has waited for its rate
        self._turn: asyncio.TimerHandle | None = None
        self._server: asyncio.Server | None = None
        self._idle_check: asyncio.TimerHandle | None = None
        limits.add_listener(self.name)

    async def open(self, bound: socket.socket) -> None:
        """Accept connections on a socket that is bound already."""
        backlog: int = self.broker.settings["socket.listen.backlog.size"]
        self._server = await self.loop.create_server(lambda: Channel(self), sock=bound, backlog=backlog)
        self.port = self._server.sockets[0].getsockname()[1]
        self._schedule_idle_check()

    async def close(self) -> None:
        """Stop listening and close every connection after what it is owed has been written."""
        for timer in (self._idle_check, self._turn):
            if timer is not None:
                timer.cancel()
        if self._server is not None:
            self._server.close()
        for channel in [*self.channels, *self._arriving]:
            channel.close()
        self.limits.remove_listener(self.name)

    # -- admission -------------------------------------------------------------------------------

    def admit(self, channel: Channel) -> None:
        """A connection is there, held until its turn comes, which may be at once."""
        self._arriving.append(channel)
        backlog: int = self.broker.settings["socket.listen.backlog.size"]
        if len(self._arriving) > backlog + 1:
            channel.refuse(f"{backlog} connections wait for a place already (max.connections)")
        elif len(self._arriving) == 1:
            self.let_in()

    def let_in(self) -> None:
        """Let in whoever waits and may: a place is free, the rate is kept, or a setting has changed."""
        arriving, limits = self._arriving, self.limits
        while arriving:
            now = self.loop.time()
            if self._next_at is None:
                self._next_at = now + limits.wait_ms(self.name, now * 1000) / 1000
            if self._next_at > now:
                self._wait_until(self._next_at)
                return
            if not limits.has_place(self.name):
                return
            channel = arriving.popleft()
            self._next_at = None
            self._take(channel, now)

    def _wait_until(self, moment: float) -> None:
        if self._turn is None:
            self._turn = self.loop.call_at(moment, self._next_turn)

    def _next_turn(self) -> None:
        self._turn = None  # the loop may be early by a fraction: then it waits once more
        self.let_in()

    def _take(self, channel: Channel, now: float) -> None:
        limits = self.limits
        limits.count(self.name, channel.host)
        self.channels[channel] = None
        self.set_buffers(channel)
        wait_ms = limits.address_wait_ms(channel.host, self.name, now * 1000)
        if wait_ms:
            self.loop.call_later(
                wait_ms / 1000,
                channel.refuse,
                f"{channel.host} connects too often (connection_creation_rate)",
            )
            return
        allowed = limits.allowed_from(channel.host)
        if limits.per_host[channel.host] > allowed:
            channel.refuse(f"more than {allowed} connections (max.connections.per.ip)")
        elif limits.is_exceeded:
            self.close_least_active()
        channel.let_go()

    def close_least_active(self) -> None:
        """Make room: `max.connections` was lowered, or the brokers' own listener needed a place."""
        candidates = [
            channel
            for listener in self.neighbours
            if not self.limits.is_protected(listener.name)
            for channel in listener.channels
        ]
        excess = self.limits.total - self.limits.total_max
        for channel in sorted(candidates, key=lambda each: each.last_active)[: max(excess, 0)]:
            channel.refuse("the broker has more connections than it may (max.connections)")

    def dismiss(self, channel: Channel) -> None:
        if self.channels.pop(channel, channel) is not None:
            if channel in self._arriving:
                self._arriving.remove(channel)
                self.let_in()
            return
        self.limits.forget(self.name, channel.host)
        for listener in self.neighbours or (self,):
            listener.let_in()

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
