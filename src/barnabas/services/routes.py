"""Routes of services: Starlette's, with the rights and the limits that each declares.

In: a path with parameters in braces, an endpoint, `needs`. Out: a route for `service_app`.
Does not know: how a path is matched, who the caller is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from enum import StrEnum

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

GET = ("GET",)


class Need(StrEnum):
    """The right that a route asks of its caller. None stands for a route that everybody may ask."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class ServiceRoute(Route):
    """`is_stream`: bodies and responses may last, so the time and the size of a request are not limited;
    each message that is sent is. `body_bytes_max` takes the place of the service's limit."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[[Request], Awaitable[Response]],
        *,
        needs: Need | None,
        methods: Collection[str] = GET,
        is_stream: bool = False,
        body_bytes_max: int | None = None,
    ) -> None:
        super().__init__(path, endpoint, methods=list(methods))
        self.needs = needs
        self.is_stream = is_stream
        self.body_bytes_max = body_bytes_max


class ServiceWebSocketRoute(WebSocketRoute):
    """A WebSocket. It counts as a stream."""

    def __init__(
        self, path: str, endpoint: Callable[[WebSocket], Awaitable[None]], *, needs: Need | None
    ) -> None:
        super().__init__(path, endpoint)
        self.needs = needs
        self.is_stream = True


AnyRoute = ServiceRoute | ServiceWebSocketRoute
