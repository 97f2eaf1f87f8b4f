"""The listener: one listening address and the connections that it serves.

In: an endpoint of the settings. Out: a `Channel` for every connection that the limits admit. While
`max.connections` (of the broker or the listener) or `max.connection.creation.rate` is exhausted, one
connection waits and the listener accepts no other: they stay in the kernel's queue, as in Kafka. It closes
connections over `max.connections.per.ip` at once, those over the rate of their address after a wait, and
those that are idle or read nothing after `connections.max.idle.ms`. When the listener's share of descriptors
is exhausted, it closes a silent connection; if there is none, it closes the new one.
Does not know: requests.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING

from barnabas.broker.api.routes import Check, Router
from barnabas.broker.wire.channel import Channel
from barnabas.broker.wire.connection_limits import ConnectionLimits
from barnabas.broker.wire.giving_way import GivingWay
from barnabas.broker.wire.listener_sasl import ListenerSasl
from barnabas.broker.wire.login import LoginChannel
from barnabas.broker.wire.measuring import TrafficLog
from barnabas.security.principal import ANONYMOUS
from barnabas.security.principal_builder import Peer

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.produce.tick import Tick
    from barnabas.broker.wire.listener_tls import ListenerTls
    from barnabas.runtime.accepting import Acceptor, Arrival
    from barnabas.runtime.descriptors import Share
    from barnabas.runtime.sockets import Sockets
    from barnabas.settings.listeners import EndPoint

log = logging.getLogger("barnabas.server")
IDLE_CHECK_SECONDS_MAX = 30.0
REFUSALS_TOLD_EVERY_S = 60.0
Blocked = tuple[tuple[int, int, int], float]  # the position of a channel's output, and since when


class Listener:
    """One listening address and its channels."""

    def __init__(
        self,
        endpoint: EndPoint,
        kind: str,
        broker: Broker,
        tick: Tick,
        limits: ConnectionLimits,
        share: Share,
    ) -> None:
        self.endpoint = endpoint
        self.name = endpoint.name
        self.kind = kind  # "broker" or "controller": which APIs are served
        self.broker = broker
        self.tick = tick
        self.limits = limits
        self.share = share  # of descriptors
        self.loop = asyncio.get_running_loop()
        serves_unstable: bool = broker.settings["unstable.api.versions.enable"]
        check: Check | None = None
        if broker.access is not None:
            from barnabas.broker.access import checking  # imports what most nodes do not need

            check = checking.check
        self.router = Router(kind, broker.metrics, serves_unstable, check)
        self.frame_bytes_max: int = broker.settings["socket.request.max.bytes"]
        has_sasl = endpoint.security_protocol.startswith("SASL")
        self.sasl = ListenerSasl(broker, endpoint.name, kind) if has_sasl else None
        self.channel_class: type[Channel] = Channel  # of connections that need no login, or had theirs
        if broker.tracing is not None:
            from barnabas.broker.wire.traced_channel import TracedChannel, TracedRoutes

            self.channel_class = TracedChannel
            self.router.routes = TracedRoutes(self.router, broker.tracing)
        self.new_channel: type[Channel] = LoginChannel if has_sasl else self.channel_class
        self.channels: dict[Channel, None] = {}
        self.port = endpoint.port
        self.tls: ListenerTls | None = None  # of a listener with TLS, before it opens
        self.neighbours: Sequence[Listener] = ()  # listeners with the same limits
        self.traffic = TrafficLog()
        self.refused = 0  # connections closed for lack of a descriptor
        self._waiting: Arrival | None = None  # accepted, but over a limit now
        self._next_at: float | None = None  # when the creation rate admits it
        self._turn: asyncio.TimerHandle | None = None
        self._delayed: dict[Arrival, asyncio.TimerHandle] = {}  # over their address's rate: closed later
        self._acceptor: Acceptor | None = None
        self._idle_check: asyncio.TimerHandle | None = None
        self._giving_way = GivingWay(self.channels)
        self._refusals_told_at: float | None = None
        self._refused_before = 0  # as of the last warning
        self._blocked: dict[Channel, Blocked] = {}  # as of the last check
        self._is_closed = False
        self._blocked_ns = self._blocked_since_ns = 0  # while it accepted nothing
        limits.add_listener(self.name)

    def open(self, sockets: Sockets, bound: socket.socket) -> None:
        """Accept connections on a bound socket."""
        backlog: int = self.broker.settings["socket.listen.backlog.size"]
        self._acceptor = sockets.listen(bound, backlog, self.arrived, self._turned_away)
        self.port = self._acceptor.port
        self._schedule_idle_check()

    async def close(self) -> None:
        """Stop listening and close every connection after its responses are written."""
        self._is_closed = True
        for timer in (self._idle_check, self._turn, *self._delayed.values()):
            if timer is not None:
                timer.cancel()
        if self._acceptor is not None:
            self._acceptor.close()
        for channel in list(self.channels):
            channel.close()
        if self.tls is not None:
            self.tls.close()
        for arrival in (*self._delayed, *([self._waiting] if self._waiting is not None else [])):
            arrival.close()
            self.share.release()
        self._delayed.clear()
        self._waiting = None
        self.limits.remove_listener(self.name)

    # -- admission -------------------------------------------------------------------------------

    def arrived(self, arrival: Arrival) -> None:
        """Admit a new connection now or when the limits allow it, or close it."""
        if not self.share.acquire():
            if not self._make_room():
                arrival.close()
                self._turned_away()
                return
            self.share.acquire_beyond_limit()  # until the spared connection is closed, in a moment
        assert self._waiting is None and self._acceptor is not None
        self._waiting = arrival
        self.let_in()
        if self._waiting is not None:
            self._acceptor.pause()
            self._blocked_since_ns = perf_counter_ns()

    def blocked_ns(self) -> int:
        """How long a limit has kept it from accepting connections."""
        since_ns = self._blocked_since_ns
        return self._blocked_ns + (perf_counter_ns() - since_ns if since_ns else 0)

    def let_in(self) -> None:
        """Admit the waiting connection if the limits allow it now."""
        arrival, limits = self._waiting, self.limits
        if arrival is None:
            return
        now = self.loop.time()
        if self._next_at is None:
            self._next_at = now + limits.wait_ms(self.name, now * 1000) / 1000
        if self._next_at > now:
            self._wait_until(self._next_at)
            return
        if not limits.has_place(self.name):
            return
        self._waiting = self._next_at = None
        self._serve_or_drop(arrival, now)
        self._blocked_ns, self._blocked_since_ns = self.blocked_ns(), 0
        if self._acceptor is not None:
            self._acceptor.resume()

    def _wait_until(self, moment: float) -> None:
        if self._turn is None:
            self._turn = self.loop.call_at(moment, self._next_turn)

    def _next_turn(self) -> None:
        self._turn = None  # the loop may call a little early: then it waits once more
        self.let_in()

    def _serve_or_drop(self, arrival: Arrival, now: float) -> None:
        limits, host = self.limits, arrival.host
        wait_ms = limits.address_wait_ms(host, self.name, now * 1000)
        if wait_ms:
            self._delayed[arrival] = self.loop.call_later(wait_ms / 1000, self._close_delayed, arrival)
            return
        allowed = limits.allowed_from(host)
        if limits.per_host.get(host, 0) >= allowed:
            self._drop(arrival, f"more than {allowed} connections (max.connections.per.ip)")
            return
        tls = self.tls
        if tls is not None:
            limits.count(self.name, host)
            gone = partial(self._gone, host)
            arrival.serve(lambda: tls.accept(host, self._new_channel, gone), gone)
            return
        channel = self._new_channel(Peer(self.name, host))
        if channel is None:
            self._drop(arrival, "principal.builder.class made no principal")
            return
        limits.count(self.name, host)
        arrival.serve(lambda: channel, lambda: self._gone(host))

    def _new_channel(self, peer: Peer) -> Channel | None:
        """The channel of a peer, named by `principal.builder.class`. None if that fails."""
        principal = ANONYMOUS
        if self.sasl is None:  # a login names its own principal
            try:
                principal = self.broker.logins.principal_builder(self.name)(peer)
            except Exception as error:
                log.warning("listener %s: no principal for a peer at %s: %s", self.name, peer.host, error)
                return None
        channel = self.new_channel(self, peer.host)
        channel.context.principal = principal
        return channel

    def _close_delayed(self, arrival: Arrival) -> None:
        del self._delayed[arrival]
        self._drop(arrival, f"{arrival.host} connects too often (connection_creation_rate)")

    def _drop(self, arrival: Arrival, reason: str) -> None:
        log.info("closing the connection from %s: %s", arrival.host, reason)
        arrival.close()
        self.share.release()

    def connected(self, channel: Channel) -> bool:
        """Serve a connection that was admitted. Returns False if the listener is closed."""
        if self._is_closed:
            return False
        self.channels[channel] = None
        self.traffic.creations += 1
        self.set_buffers(channel)
        if self.limits.is_exceeded:
            self.close_least_active()
        return True

    def dismiss(self, channel: Channel) -> None:
        if self.channels.pop(channel, self) is None:
            self.traffic.closed(channel)
        self._gone(channel.host)
        for lost in self.broker.on_disconnect:
            lost(channel)

    def _gone(self, host: str) -> None:
        self.share.release()
        self.limits.forget(self.name, host)
        for listener in self.neighbours or (self,):
            listener.let_in()

    # -- making room -----------------------------------------------------------------------------

    def _make_room(self) -> bool:
        """Close an idle connection to free a descriptor. Returns False if there is none to close."""
        now = self.loop.time()
        for listener in (self, *self.neighbours):
            if listener.share is self.share:
                if listener.tls is not None and listener.tls.give_way():
                    return True
                spared = listener._giving_way.next(now)
                if spared is not None:
                    spared.abort("another connection needs its descriptor (see ulimit -n)")
                    return True
        return False

    def _turned_away(self) -> None:
        """Count a connection that was closed for lack of a descriptor, and warn once a minute."""
        self.refused += 1
        now = self.loop.time()
        if self._refusals_told_at is None or now - self._refusals_told_at >= REFUSALS_TOLD_EVERY_S:
            self._refusals_told_at = now
            log.warning(
                "listener %s closed %d connections at once: %d of %d descriptors are in use; "
                "raise the limit of open files (ulimit -n), or lower max.connections",
                self.name,
                self.refused - self._refused_before,
                self.share.used,
                self.share.limit,
            )
            self._refused_before = self.refused

    def close_least_active(self) -> None:
        """Close connections over `max.connections`, which was lowered or exceeded by another broker's."""
        candidates = [
            channel
            for listener in self.neighbours
            if not self.limits.is_protected(listener.name)
            for channel in listener.channels
        ]
        excess = self.limits.total - self.limits.total_max
        for channel in sorted(candidates, key=lambda each: each.last_active)[: max(excess, 0)]:
            channel.refuse("the broker has more connections than it may (max.connections)")

    def set_buffers(self, channel: Channel) -> None:
        """Set the sizes of socket buffers that the settings name. The kernel chooses the others."""
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
        now = self.loop.time()
        oldest = now - self.limits.idle_seconds
        blocked: dict[Channel, Blocked] = {}
        for channel in list(self.channels):
            if channel.last_active >= oldest:
                continue
            if not channel.is_busy:
                channel.refuse(f"idle for {self.limits.idle_seconds:.0f} s (connections.max.idle.ms)")
            elif channel.outbox.is_waiting:  # for a client that does not read its responses
                mark = channel.outbox.mark
                before = self._blocked.get(channel)
                since = before[1] if before is not None and before[0] == mark else now
                blocked[channel] = mark, since
                if since < oldest:
                    channel.abort("the client reads nothing (connections.max.idle.ms)")
        self._blocked = blocked
        self._schedule_idle_check()
