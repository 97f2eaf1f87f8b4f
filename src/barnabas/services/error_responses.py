"""Turns exceptions of a request into responses in the API's form.

In: an ASGI application. Out: the same, which raises nothing. ApiError and Starlette's HTTPException become
their status; everything else is logged once and becomes 500 without details. When a response began already,
the connection is closed instead. Does not know: which errors there are.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from barnabas.services.errors import ApiError
from barnabas.services.exchange import Exchange, exchange_of
from barnabas.services.limits import Limits, ReaderStalled, has_body, is_drained
from barnabas.services.negotiation import HEADER_LENGTH_MAX, chosen
from barnabas.services.routing import shown

POLICY_VIOLATION = 1008
REASON_LENGTH_MAX = 120  # bytes of the reason of a WebSocket's close frame
STOPPING = ApiError(503, 503, "the service is stopping; try again", {"retry-after": "1"})
UNEXPECTED = ApiError(500, 500, "HTTP 500 Internal Server Error: the log of the service has the reason")


@dataclass(frozen=True, slots=True)
class ErrorForm:
    """`body` gives the JSON of an error. `converted` knows exceptions of the service's own. Requests that are
    cancelled while `stopping` is set end with 503."""

    body: Callable[[ApiError], object]
    converted: Callable[[Exception], ApiError | None]
    media_types: tuple[str, ...]
    stopping: asyncio.Event


class ErrorResponses:
    def __init__(self, application: ASGIApp, service: str, form: ErrorForm, limits: Limits) -> None:
        self._application = application
        self._form = form
        self._limits = limits
        self._log = logging.getLogger(f"barnabas.{service}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._application(scope, receive, send)
        except (ClientDisconnect, WebSocketDisconnect, ReaderStalled):
            return  # nobody is there to get a response
        except asyncio.CancelledError:
            if not self._form.stopping.is_set():
                raise
            await self._end(STOPPING, scope, receive, send)
        except Exception as error:
            await self._end(self._as_api_error(error, scope), scope, receive, send)

    async def _end(self, error: ApiError, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = exchange_of(scope)
        if exchange.has_begun:
            self._log.warning("a response of %s ended early: %s", where(scope), error.message)
        elif scope["type"] == "websocket":
            await self._close(error, scope, receive, send)
        else:
            await self._respond(error, exchange, scope, receive, send)

    def _as_api_error(self, error: Exception, scope: Scope) -> ApiError:
        if isinstance(error, ApiError):
            return error
        if isinstance(error, HTTPException):
            return ApiError(error.status_code, error.status_code, error.detail, error.headers or {})
        found = self._form.converted(error)
        if found is None:
            self._log.error("%s failed", where(scope), exc_info=error)
            return UNEXPECTED
        return found

    async def _respond(
        self, error: ApiError, exchange: Exchange, scope: Scope, receive: Receive, send: Send
    ) -> None:
        headers = dict(error.headers)
        # A body that goes on arriving behind its response would keep the connection busy.
        if not exchange.body_arrived and has_body(scope) and not await is_drained(receive, self._limits):
            headers["connection"] = "close"
        await self._response(error, scope, headers)(scope, receive, send)

    async def _close(self, error: ApiError, scope: Scope, receive: Receive, send: Send) -> None:
        if "websocket.http.response" in scope.get("extensions", {}):
            await self._response(error, scope, error.headers)(scope, receive, send)
        else:
            reason = error.message.encode()[:REASON_LENGTH_MAX].decode(errors="ignore")
            await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": reason})

    def _response(self, error: ApiError, scope: Scope, headers: object) -> Response:
        body = json.dumps(self._form.body(error), separators=(",", ":")).encode()
        offered = self._form.media_types
        accept = header_of(scope, b"accept")
        media_type = chosen(accept[:HEADER_LENGTH_MAX], offered) or offered[0]
        return Response(body, error.status, headers, media_type)  # type: ignore[arg-type]


def header_of(scope: Scope, wanted: bytes) -> str:
    for name, value in scope["headers"]:
        if name == wanted:
            return str(value.decode("latin-1"))
    return ""


def where(scope: Scope) -> str:
    return f"{scope.get('method', 'WebSocket')} {shown(scope.get('path', ''))}"
