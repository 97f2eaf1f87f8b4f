"""Calls of a service in process: a client without sockets, and requests message by message."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from barnabas.services.app import Guard, Service, ServiceApp
from barnabas.services.routes import Need, ServiceRoute


def app_of(routes: Sequence[Any] = (), guard: Guard | None = None, **given: Any) -> ServiceApp:
    return ServiceApp(Service("sample", list(routes), **given), guard)


@asynccontextmanager
async def client_of(app: ServiceApp) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=True)
    async with httpx.AsyncClient(transport=transport, base_url="http://sample") as client:
        yield client


async def echo(request: Request) -> Response:
    return JSONResponse({"path": request.path_params, "size": len(await request.body())})


def route(path: str, endpoint: Any = echo, **given: Any) -> ServiceRoute:
    return ServiceRoute(path, endpoint, **{"needs": Need.READ, **given})


class Exchanged:
    """The response to one request that was sent message by message."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.messages[0]["headers"]}

    def json(self) -> Any:
        return json.loads(b"".join(each.get("body", b"") for each in self.messages[1:]))


async def exchanged(
    app: Any,
    chunks: Callable[[], AsyncIterator[bytes]],
    *,
    method: str = "POST",
    path: str = "/echo",
    headers: Sequence[tuple[bytes, bytes]] = ((b"transfer-encoding", b"chunked"),),
) -> Exchanged:
    """Send a request whose body comes from `chunks`, which may wait or never end."""
    found = Exchanged()
    body = chunks()

    async def receive() -> dict[str, Any]:
        try:
            return {"type": "http.request", "body": await anext(body), "more_body": True}
        except StopAsyncIteration:
            return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        found.messages.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": list(headers),
        "client": ("127.0.0.1", 1),
    }
    async with asyncio.timeout(20):
        await app(scope, receive, send)
    return found
