"""A service as an ASGI application: errors, limits, metrics and health around its routes.

In: a `Service`. Out: `ServiceApp`. The order from outside: observing, errors, routing, the guard (who calls,
and whether it may), limits, the endpoint. An error of one request never reaches another one.
Does not know: sockets, settings, how callers prove their names.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.routing import BaseRoute
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from barnabas.services import limits as bounds
from barnabas.services.caller import Caller
from barnabas.services.error_responses import ErrorForm, ErrorResponses
from barnabas.services.errors import ApiError, error_body
from barnabas.services.exchange import Exchange, exchange_of
from barnabas.services.health import Readiness, health_routes
from barnabas.services.limits import Admission, Limits
from barnabas.services.metrics import ServiceMetrics
from barnabas.services.observing import Observing
from barnabas.services.routes import AnyRoute, Need, ServiceRoute, ServiceWebSocketRoute
from barnabas.services.routing import WEB_SOCKET, RouteTable

JSON = "application/json"
Guard = Callable[[Scope, Need | None], Awaitable[Caller]]


async def nothing() -> None:
    return


def always_ready() -> None:
    return None


@dataclass(slots=True)
class Service:
    """The parts that a service gives to the frame.

    `start` runs before the first request, `stop` behind the last one. `why_not_ready` returns a sentence
    while the service should get no requests. `media_types` are those of its responses, its own one first.
    `converted` turns exceptions of the service's own into ApiError; None for all others. The frame sets
    `stopping` when the process begins to stop: long responses end then. `beside` are routes that have
    listeners of their own, where only health and metrics are served too. `headers` gives what every
    response gets, those to unknown paths and strangers too.
    """

    name: str
    routes: Sequence[BaseRoute]
    start: Callable[[], Awaitable[None]] = nothing
    stop: Callable[[], Awaitable[None]] = nothing
    why_not_ready: Readiness = always_ready
    error_form: Callable[[ApiError], object] = error_body
    converted: Callable[[Exception], ApiError | None] = lambda error: None
    media_types: tuple[str, ...] = (JSON,)
    limits: Limits = field(default_factory=Limits)
    metrics: ServiceMetrics = None  # type: ignore[assignment]  # made from the name
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    beside: Sequence[BaseRoute] = ()
    headers: Callable[[], Mapping[str, str]] | None = None

    def __post_init__(self) -> None:
        if self.metrics is None:
            self.metrics = ServiceMetrics(self.name)
        if self.metrics.jetty is not None:
            self.metrics.jetty.requests_max = self.limits.requests_max


class ServiceApp:
    """The ASGI application of a service."""

    def __init__(self, service: Service, guard: Guard | None = None) -> None:
        self.service = service
        self.admission = Admission(service.limits)
        self._guard = guard
        self._table = RouteTable(all_routes(service))
        self._log = logging.getLogger(f"barnabas.{service.name}")
        form = ErrorForm(service.error_form, service.converted, service.media_types, service.stopping)
        errors = ErrorResponses(self._respond, service.name, form, service.limits)
        self._outermost = Observing(errors, service.name, service.metrics)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            if self.service.headers is not None and scope["type"] == "http":
                send = with_headers(send, self.service.headers)
            await self._outermost(scope, receive, send)

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = exchange_of(scope)
        method = scope["method"] if scope["type"] == "http" else WEB_SOCKET
        refusal = route = None
        try:
            route, scope["path_params"] = self._table.find(method, raw_path(scope))
            exchange.template = route.path
        except ApiError as error:
            refusal = error
        if self._guard is not None:  # unknown paths too: strangers do not learn which paths there are
            exchange.caller = await self._guard(scope, route.needs if route is not None else Need.READ)
        if refusal is not None:
            raise refusal
        assert route is not None
        if isinstance(route, ServiceRoute) and not route.is_stream:
            await self._serve(route, exchange, scope, receive, send)
            return
        self.admission.enter(is_stream=True)
        try:
            await self._stream(route, exchange, scope, receive, send)
        finally:
            self.admission.leave(is_stream=True)

    async def _stream(
        self, route: AnyRoute, exchange: Exchange, scope: Scope, receive: Receive, send: Send
    ) -> None:
        limits = self.service.limits
        if isinstance(route, ServiceWebSocketRoute):
            await route.endpoint(WebSocket(scope, receive, bounds.bounded_send(send, limits.stall_s_max)))
            return
        send = bounds.bounded_send(send, limits.stall_s_max)
        request = Request(scope, bounds.paced_body(receive, exchange), send)
        response = await route.endpoint(request)
        await response(scope, request.receive, send)

    async def _serve(
        self, route: ServiceRoute, exchange: Exchange, scope: Scope, receive: Receive, send: Send
    ) -> None:
        limits = self.service.limits
        given = route.body_bytes_max
        bytes_max = limits.body_bytes_max if given is None else given
        exchange.body_arrived = not bounds.has_body(scope)

        async def run() -> None:
            body = receive
            if not exchange.body_arrived:
                body = await bounds.whole_body(scope, receive, exchange, bytes_max, self.admission)
            self.admission.enter(is_stream=False)
            try:
                response = await route.endpoint(Request(scope, body, send))
                await response(scope, body, send)
            finally:
                self.admission.leave(is_stream=False)

        try:
            await bounds.within(limits.request_s_max, exchange, run)
        finally:
            self.admission.release(exchange.bytes_received)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.service.start()
                except Exception as error:
                    self._log.exception("the service %s cannot start", self.service.name)
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                self.service.stopping.set()
                try:
                    await self.service.stop()
                except Exception:
                    self._log.exception("the service %s did not stop in order", self.service.name)
                await send({"type": "lifespan.shutdown.complete"})
                return


def with_headers(send: Send, headers: Callable[[], Mapping[str, str]]) -> Send:
    """Add headers to a response; they win over those of its endpoint."""

    async def send_more(message: Message) -> None:
        if message["type"] == "http.response.start":
            found = MutableHeaders(raw=list(message["headers"]))
            found.update(headers())
            message = {**message, "headers": found.raw}
        await send(message)

    return send_more


def raw_path(scope: Scope) -> bytes:
    found: bytes | None = scope.get("raw_path")
    return found if found is not None else quote(scope["path"]).encode("ascii")


def all_routes(service: Service) -> list[AnyRoute]:
    """The service's routes, and those of the frame that it does not have itself. ValueError for a route that
    does not declare what it needs of its caller."""
    found: list[AnyRoute] = []
    for route in service.routes:
        if not isinstance(route, ServiceRoute | ServiceWebSocketRoute):
            raise ValueError(f"{route!r} declares no `needs`: use ServiceRoute or ServiceWebSocketRoute")
        found.append(route)
    paths = {route.path for route in found}
    own = health_routes(service.name, service.why_not_ready, service.metrics)
    return [*found, *(route for route in own if route.path not in paths)]
