"""Runs a service on its listeners until it is told to stop.

In: a `Service`, bound sockets. Out: nothing; the coroutine ends when the service has stopped. The service
starts before its listeners accept connections. When it stops, listeners close first, requests get a grace
time, then the service stops. Does not know: settings, processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from barnabas.security.tls.contexts import ServerTls
from barnabas.services.app import Service
from barnabas.services.hosting.binding import Bound
from barnabas.services.hosting.connections import (
    HTTP_2,
    ConnectionLimits,
    bounded_connection,
    bounded_web_socket,
)
from barnabas.services.jetty_metrics import ConnectionCounts

BACKLOG = 2048
HANDSHAKE_S_MAX = 10.0
WEB_SOCKET_BYTES_MAX = 1024 * 1024

log = logging.getLogger("barnabas.services")


@dataclass(frozen=True, slots=True)
class HostSettings:
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    idle_s_max: float = 30.0
    grace_s: float = 5.0


class Host:
    def __init__(
        self,
        service: Service,
        application: ASGIApp,
        bound: Sequence[Bound],
        settings: HostSettings,
        beside: ASGIApp | None = None,
    ) -> None:
        """`beside` is served on the listeners that are beside."""
        self._service = service
        self._settings = settings
        self._server = Listening(application, bound, settings, service.metrics.connections, beside)
        self._told = asyncio.Event()

    async def replace_tls(self, tls: ServerTls, *, is_beside: bool = False) -> None:
        """New connections get this TLS: those of the listeners, or of the listeners beside."""
        await self._server.replace_tls(tls, is_beside=is_beside)

    def stop(self) -> None:
        """Begin to stop. May be called from a signal handler of the loop."""
        self._service.stopping.set()
        self._server.should_exit = True
        self._told.set()

    async def run(self, on_ready: Callable[[], None] | None = None) -> None:
        """Raises what the service's start raises; its sockets are closed then."""
        try:
            if await self._started():
                await self._server.serve_until_stopped(on_ready)
        finally:
            self._service.stopping.set()
            self._server.close_sockets()
            try:
                await self._service.stop()
            except Exception:
                log.exception("the service %s did not stop in order", self._service.name)

    async def _started(self) -> bool:
        """False when the service is told to stop while it starts."""
        starting = asyncio.ensure_future(self._service.start())
        told = asyncio.ensure_future(self._told.wait())
        try:
            await asyncio.wait((starting, told), return_when=asyncio.FIRST_COMPLETED)
        finally:
            told.cancel()
        if not starting.done():
            starting.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await starting
            return False
        starting.result()
        return not self._told.is_set()


class Listening(uvicorn.Server):
    """uvicorn on several sockets, each with its own TLS or none. Signals are the process's business."""

    def __init__(
        self,
        application: ASGIApp,
        bound: Sequence[Bound],
        settings: HostSettings,
        counts: ConnectionCounts,
        beside: ASGIApp | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                http=bounded_connection(settings.connections, frozenset(), counts),
                ws=bounded_web_socket(settings.connections),
                ws_max_size=WEB_SOCKET_BYTES_MAX,
                ws_per_message_deflate=False,  # small frames could inflate to much
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=settings.idle_s_max,  # type: ignore[arg-type]
                timeout_graceful_shutdown=settings.grace_s,  # type: ignore[arg-type]
            )
        )
        self._bound: Sequence[Bound] = bound
        self._beside = beside
        self._counts = counts
        counts.open = lambda: len(self.server_state.connections)
        self._limits = settings.connections
        self._on_ready: Callable[[], None] | None = None
        # Warnings are about requests of strangers, which get their response.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)

    async def serve_until_stopped(self, on_ready: Callable[[], None] | None) -> None:
        self._on_ready = on_ready
        await self.serve()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.servers: list[Any] = [await self._opened(each) for each in self._bound]
        self.started = True
        if self._on_ready is not None:
            self._on_ready()

    async def replace_tls(self, tls: ServerTls, *, is_beside: bool = False) -> None:
        """Accept new connections with this TLS. Connections that wait in the backlog are not lost: the new
        server has a descriptor of the same listening socket."""
        changed = []
        for index, each in enumerate(self._bound):
            if each.tls is None or each.is_beside != is_beside or self.should_exit:
                changed.append(each)
                continue
            again = replace(each, socket=each.socket.dup(), tls=tls)
            old, self.servers[index] = self.servers[index], await self._opened(again)
            old.close()
            changed.append(again)
        self._bound = changed

    async def _opened(self, bound: Bound) -> Any:
        tls = bound.tls
        kind = bounded_connection(self._limits, tls.suites if tls is not None else frozenset(), self._counts)
        if tls is not None:
            tls.context.set_alpn_protocols([HTTP_2, "http/1.1"])
        secured: dict[str, Any] = (
            {"ssl": tls.context, "ssl_handshake_timeout": HANDSHAKE_S_MAX} if tls is not None else {}
        )
        config = self.config
        if bound.is_beside:
            config = copy.copy(config)
            config.loaded_app = self._beside
        return await asyncio.get_running_loop().create_server(
            lambda: kind(config, self.server_state, {}), sock=bound.socket, backlog=BACKLOG, **secured
        )

    def close_sockets(self) -> None:
        for each in self._bound:
            each.socket.close()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
