"""Counts requests, measures their time, and writes the access log.

In: an ASGI application. Out: the same, observed. The log `barnabas.<service>.access` has one line for each
request: address, principal, method and path, status, bytes, milliseconds. Queries and headers are not
logged: they may hold secrets. Does not know: routes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from barnabas.services.exchange import KEY, Exchange
from barnabas.services.metrics import METHODS, ServiceMetrics
from barnabas.services.routing import shown

ABORTED = 499  # no response began: the client left, or the service was stopped


class Observing:
    def __init__(
        self,
        application: ASGIApp,
        service: str,
        metrics: ServiceMetrics,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._application = application
        self._metrics = metrics
        self._clock = clock
        self._log = logging.getLogger(f"barnabas.{service}.access")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = scope[KEY] = Exchange()
        begun = self._clock()

        async def observed(message: Message) -> None:
            match message["type"]:
                case "http.response.body":
                    exchange.bytes_sent += len(message.get("body", b""))
                case "http.response.start" | "websocket.http.response.start":
                    exchange.status = message["status"]
                case "websocket.accept":
                    exchange.status = 101
                case "websocket.close":
                    exchange.status = exchange.status or 403
            await send(message)

        self._metrics.active.inc()
        try:
            await self._application(scope, receive, observed)
        finally:
            self._metrics.active.dec()
            self._ended(scope, exchange, self._clock() - begun)

    def _ended(self, scope: Scope, exchange: Exchange, seconds: float) -> None:
        method = scope.get("method", "WEBSOCKET")
        status = exchange.status or ABORTED
        self._metrics.ended(
            exchange.template,
            method if method in METHODS else "other",
            status,
            seconds,
            exchange.bytes_received,
            exchange.bytes_sent,
        )
        if self._log.isEnabledFor(logging.INFO):
            client = scope.get("client")
            self._log.info(
                '%s %s "%s %s" %d %d %.1f ms',
                client[0] if client else "-",
                shown(exchange.caller.principal.name) if exchange.caller is not None else "-",
                method,
                shown(scope.get("raw_path", b"").decode("latin-1")),
                status,
                exchange.bytes_sent,
                seconds * 1000,
            )
