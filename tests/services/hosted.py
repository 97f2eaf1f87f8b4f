"""A service on real sockets, on the loop of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.websockets import WebSocket

from barnabas.services.app import Service
from barnabas.services.caller import caller_of
from barnabas.services.hosting.binding import bind, listener_tls
from barnabas.services.hosting.process import MakeService, host_of
from barnabas.services.routes import Need, ServiceRoute, ServiceWebSocketRoute
from barnabas.services.settings.listeners import Listener
from barnabas.services.settings.loading import load_settings
from barnabas.services.settings.service_settings import ServiceSettings


class Sample:
    """A service with an endpoint of each kind."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.go = asyncio.Event()

    def service(self, settings: ServiceSettings) -> Service:
        async def who(request: Request) -> Response:
            return JSONResponse(caller_of(request).principal.name)

        async def size(request: Request) -> Response:
            return JSONResponse(len(await request.body()))

        async def wait(request: Request) -> Response:
            self.events.append("waiting")
            await self.go.wait()
            return JSONResponse("done")

        async def ticks() -> AsyncIterator[bytes]:
            while not made.stopping.is_set():
                yield b"tick\n"
                await asyncio.sleep(0.01)
            yield b"end\n"

        async def stream(request: Request) -> Response:
            return StreamingResponse(ticks())

        async def socket(connection: WebSocket) -> None:
            await connection.accept()
            await connection.send_text(caller_of(connection).principal.name)
            await connection.close()

        async def start() -> None:
            self.events.append(f"start {settings.listeners[0].port != 0}")

        async def stop() -> None:
            self.events.append("stop")

        made = Service(
            "sample",
            [
                ServiceRoute("/who", who, needs=Need.READ),
                ServiceRoute("/size", size, needs=Need.WRITE, methods=["POST"]),
                ServiceRoute("/wait", wait, needs=Need.READ),
                ServiceRoute("/stream", stream, needs=Need.READ, is_stream=True),
                ServiceWebSocketRoute("/socket", socket, needs=Need.READ),
            ],
            start,
            stop,
        )
        return made


@asynccontextmanager
async def hosted(
    sample: Sample | None = None,
    listeners: str = "http://127.0.0.1:0",
    make: MakeService | None = None,
    **changes: str,
) -> AsyncIterator[tuple[Any, tuple[Listener, ...]]]:
    """A host that runs, and its listeners with their ports."""
    given = {"bootstrap.servers": "localhost:1"}
    given |= {name.replace("_", "."): text for name, text in changes.items()}
    settings = load_settings(
        "rest",
        overrides={"listeners": listeners, **given},
        defaults={"shutdown.graceful.ms": "500"},
    )
    bound = bind(settings.listeners, listener_tls(settings))
    places = tuple(each.listener for each in bound)
    host = host_of(settings.listening_on(places), make or (sample or Sample()).service, bound)
    ready = asyncio.Event()
    running = asyncio.ensure_future(host.run(ready.set))
    try:
        waiting = asyncio.ensure_future(ready.wait())
        await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if running.done():
            running.result()
        yield host, places
    finally:
        host.stop()
        await running
