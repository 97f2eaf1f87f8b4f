"""The listeners of a node: opened at start and when settings change, with their limits.

In: settings, bound sockets. Out: open listeners. A change of `listeners` opens the new ones and closes the
removed ones with their connections. Changed limits take effect at once. Does not know: which APIs are served.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.broker.handlers.loading import load_handlers
from barnabas.broker.log_lines.names import REQUESTS
from barnabas.broker.quotas.throttling import Guard
from barnabas.broker.wire.connection_limits import LIMITS, ConnectionLimits
from barnabas.broker.wire.server import Listener
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.quotas import Levels
from barnabas.security.errors import SecuritySettingsError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.log_lines.request_log import RequestLog
    from barnabas.broker.produce.tick import Tick
    from barnabas.broker.wire.listener_tls import ListenerTls
    from barnabas.broker.wire.tls_reload import TlsReload
    from barnabas.runtime.descriptors import Shares
    from barnabas.runtime.sockets import Sockets
    from barnabas.settings import BrokerSettings, EndPoint

log = logging.getLogger("barnabas.server")
CLIENTS, CONTROLLER = "broker", "controller"
TLS_PROTOCOLS = ("SSL", "SASL_SSL")
TELL_MS = 30_000
TellListeners = Callable[[Sequence["EndPoint"], Sequence[bytes], int], Awaitable[None]]


class Listening:
    def __init__(self, broker: Broker, tick: Tick, sockets: Sockets, shares: Shares) -> None:
        self._broker = broker
        self._tick = tick
        self._sockets = sockets
        self.listeners: list[Listener] = []
        self._guard = Guard(broker.quotas)
        self._tasks: set[asyncio.Task[None]] = set()
        settings = broker.settings
        self._limits = {CLIENTS: ConnectionLimits(settings), CONTROLLER: ConnectionLimits(settings)}
        self.shares = shares
        self._reload: TlsReload | None = None  # if there are listeners with TLS
        self.tell: TellListeners | None = None  # a broker's way to register its listeners again

    async def open_controllers(self, bound: Mapping[str, socket.socket]) -> None:
        """Open the controllers' listeners, which the quorum needs first."""
        load_handlers()
        for endpoint in self._broker.settings.controller_listeners:
            await self._open(endpoint, bound[endpoint.name])

    async def start(self, bound: Mapping[str, socket.socket]) -> None:
        """Open the other listeners of the settings. OSError names an address that cannot be bound."""
        load_handlers()
        open_now = {listener.name for listener in self.listeners}
        for endpoint in self._broker.settings.listeners:
            if endpoint.name in open_now:
                continue
            if endpoint.name in bound:
                await self._open(endpoint, bound[endpoint.name])
            else:
                await self._try_to_open(endpoint)
        dynamic = self._broker.dynamic
        dynamic.on_change(LIMITS, self._limits_changed)
        dynamic.on_change(("listeners",), self._listeners_changed)
        dynamic.checks.append(self._check)
        await self._tell_others()
        self._broker.quotas.on_change.append(self._quotas_changed)
        self._quotas_changed()
        if self._broker.access is not None:
            self._broker.access.on_change.append(self._rights_changed)

    async def close_for_clients(self) -> None:
        """Close all but the controllers' listeners."""
        for listener in [each for each in self.listeners if each.kind == CLIENTS]:
            await listener.close()
            self.listeners.remove(listener)

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._reload is not None:
            self._reload.stop()
        for listener in self.listeners:
            await listener.close()

    @property
    def limits(self) -> ConnectionLimits:
        """The limits of clients' connections."""
        return self._limits[CLIENTS]

    async def _open(self, endpoint: EndPoint, bound: socket.socket) -> None:
        kind = CONTROLLER if endpoint.name in self._broker.settings.controller_listener_names else CLIENTS
        is_for_peers = kind == CONTROLLER or self._is_for_brokers_alone(endpoint.name)
        share = self.shares.peers if is_for_peers else self.shares.clients
        tls = await self._load_tls(endpoint) if endpoint.security_protocol in TLS_PROTOCOLS else None
        listener = Listener(endpoint, kind, self._broker, self._tick, self._limits[kind], share)
        listener.tls = tls
        try:
            listener.open(self._sockets, bound)
        except OSError as error:
            self._limits[kind].remove_listener(endpoint.name)
            raise OSError(error.errno, f"cannot listen on {endpoint}: {error.strerror}") from None
        self.listeners.append(listener)
        self._meet()
        if self._reload is not None:
            self._reload.start()
        if self._is_guarded:
            listener.router.guard(self._guard)
        listener.router.log_requests(self._request_log())

    async def _load_tls(self, endpoint: EndPoint) -> ListenerTls:
        """Read the stores of a listener, in a thread. SecuritySettingsError if one cannot be used."""
        from barnabas.broker.wire.listener_tls import ListenerTls, TlsPlan
        from barnabas.broker.wire.tls_reload import TlsReload

        broker = self._broker
        try:
            plan = TlsPlan(broker.settings, endpoint)
            seen = await broker.threads.run(plan.fingerprint)
            loaded = await broker.threads.run(plan.load)
            tls = ListenerTls(plan, loaded, seen, broker.threads.tls)
        except SecuritySettingsError as error:
            raise SecuritySettingsError(f"listener {endpoint} cannot use TLS: {error}") from None
        if self._reload is None:
            self._reload = TlsReload(broker, self.listeners)
        return tls

    def _is_for_brokers_alone(self, name: str) -> bool:
        """Whether clients have another listener, so that this one gets its own share of descriptors."""
        settings = self._broker.settings
        others = [each for each in settings.listeners if each.name not in settings.controller_listener_names]
        return name == settings.inter_broker_listener_name and len(others) > 1

    def _meet(self) -> None:
        """Tell listeners which others have the same limits."""
        for listener in self.listeners:
            listener.neighbours = [each for each in self.listeners if each.limits is listener.limits]

    # -- changes while running -------------------------------------------------------------------

    def _limits_changed(self, before: BrokerSettings, after: BrokerSettings) -> None:
        for limits in self._limits.values():
            limits.configure(after)
        for listener in self.listeners:
            if listener.limits.is_exceeded:
                listener.close_least_active()
            listener.let_in()

    def _listeners_changed(self, before: BrokerSettings, after: BrokerSettings) -> None:
        task = asyncio.get_running_loop().create_task(self._follow(after))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, settings: BrokerSettings) -> None:
        wanted = {endpoint.name: endpoint for endpoint in settings.listeners}
        for listener in [each for each in self.listeners if wanted.get(each.name) != each.endpoint]:
            self.listeners.remove(listener)
            self._meet()
            await listener.close()
            log.info("listener %s is closed", listener.endpoint)
        open_now = {listener.name for listener in self.listeners}
        for endpoint in [each for name, each in wanted.items() if name not in open_now]:
            await self._try_to_open(endpoint)
        await self._tell_others()

    async def _tell_others(self) -> None:
        """Register the advertised listeners that are open, so that clients and brokers learn of them."""
        if self.tell is None:
            return
        open_now = {listener.name: listener for listener in self.listeners}
        advertised = [
            replace(
                each,
                host=each.host or self._sockets.host_name(),
                port=each.port or open_now[each.name].port,
            )
            for each in self._broker.settings.advertised_listeners
            if each.name in open_now
        ]
        dirs = [each.id for each in self._broker.log_dirs.online()]
        try:
            await self.tell(advertised, dirs, TELL_MS)
        except KafkaError as error:
            log.error("the controller did not register the changed listeners: %s", error.message)

    async def _check(self, after: BrokerSettings) -> None:
        """Refuse listeners with TLS whose stores cannot be used. KafkaError(INVALID_REQUEST)."""
        open_now = {listener.name for listener in self.listeners}
        for endpoint in after.listeners:
            if endpoint.name not in open_now and endpoint.security_protocol in TLS_PROTOCOLS:
                from barnabas.broker.wire.listener_tls import TlsPlan

                try:
                    await self._broker.threads.run(TlsPlan(after, endpoint).load)
                except SecuritySettingsError as error:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, f"listener {endpoint}: {error}") from None

    async def _try_to_open(self, endpoint: EndPoint) -> None:
        """Open a listener that was added while running. The broker goes on if that fails."""
        try:
            await self._open(endpoint, self._sockets.bind(endpoint.host, endpoint.port))
            log.info("listener %s is open", endpoint)
        except OSError as error:
            log.error("listener %s could not be opened: %s", endpoint, error.strerror)
        except SecuritySettingsError as error:
            log.error("%s", error)

    @property
    def _is_guarded(self) -> bool:
        quotas = self._broker.quotas
        return quotas.produce is not None or quotas.request is not None

    def _request_log(self) -> RequestLog | None:
        """The request log, None unless it is enabled."""
        if not logging.getLogger(REQUESTS).isEnabledFor(logging.DEBUG):
            return None
        from barnabas.broker.log_lines.request_log import RequestLog

        return RequestLog(self._broker.settings["barnabas.logs.request.every"])

    def log_levels_changed(self) -> None:
        """Write the request log, or write it no more."""
        found = self._request_log()
        for listener in self.listeners:
            listener.router.log_requests(found)
            if found is not None:
                for channel in listener.channels:
                    channel.shortcut = None

    def _quotas_changed(self) -> None:
        guard = self._guard if self._is_guarded else None
        for listener in self.listeners:
            if guard is not None or listener.router.is_guarded:
                listener.router.guard(guard)
            if guard is not None:
                for channel in listener.channels:
                    channel.shortcut = None  # every request is counted from now on
        levels = self._broker.quotas.addresses
        self.limits.address_levels = levels
        if levels is not None and any(not is_address(host) for host in levels.hosts()):
            task = asyncio.get_running_loop().create_task(self._resolve(levels))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _rights_changed(self) -> None:
        """Let every follower's next fetch be checked again."""
        for listener in self.listeners:
            for channel in listener.channels:
                channel.shortcut = None

    async def _resolve(self, levels: Levels) -> None:
        """Apply limits of host names to their addresses."""
        loop = asyncio.get_running_loop()
        addresses: dict[str, str] = {}
        for host in levels.hosts():
            if not is_address(host):
                try:
                    found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
                except OSError as error:
                    log.warning("the quota of %s is not applied, its address is unknown: %s", host, error)
                    continue
                addresses.update({str(each[4][0]): host for each in found})
        if self.limits.address_levels is levels:
            self.limits.address_levels = levels.with_addresses(addresses)


def is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdecimal()
