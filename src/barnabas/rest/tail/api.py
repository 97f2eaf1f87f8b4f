"""`GET /topics/{topic}/tail`: a topic's records as they come, as server-sent events or over WebSocket.

In: the proxy. Out: routes, and their part of the description. The number of tails is bounded. A reader that
takes nothing for a while loses its connection, and resumes with its last position.
Does not know: how records are read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from barnabas.rest.kafka_errors import refusal
from barnabas.rest.proxy import Proxy
from barnabas.rest.tail.feed import Kind, Message, messages
from barnabas.rest.tail.options import FORMATS, TailOptions, options_of
from barnabas.rest.tail.reader import TailReader
from barnabas.services.negotiation import accepted
from barnabas.services.openapi import Failure, Operations, Parameter, one_of
from barnabas.services.routes import Need, ServiceWebSocketRoute

TAIL = Operations("tail")
PATH = "/topics/{topic_name}/tail"
EVENT_STREAM = "text/event-stream"
RETRY_MS = 2_000
TOO_MANY = 429005
GOING_AWAY, NORMAL, INTERNAL_ERROR = 1001, 1000, 1011
QUERY = (
    Parameter(
        "from", "string", "end, beginning, an offset, -N: N records before the end, or an RFC 3339 time"
    ),
    Parameter("partition", "string", "partitions, separated by commas; all unless given"),
    Parameter("format", one_of(*FORMATS), "of keys and values; auto unless given"),
    Parameter("key_format", one_of(*FORMATS), "of keys, if it is another one"),
    Parameter("key", "string", "only records with this key"),
    Parameter("contains", "string", "only records whose value contains this text"),
    Parameter("limit", "string", "end after so many records"),
    Parameter("read_committed", "boolean", "leave out records of open and aborted transactions"),
    Parameter("last_event_id", "string", "where an earlier tail ended; like the header Last-Event-ID"),
)


@TAIL.declare(
    "GET",
    PATH,
    "Follow a topic: records as server-sent events, or over WebSocket",
    query=QUERY,
    responses={200: {"type": "string"}},
    response_types=(EVENT_STREAM,),
    errors=(
        Failure(400, 400, "a parameter has another form"),
        Failure(404, 40403, "unknown topic"),
        Failure(404, 40402, "unknown partition"),
        Failure(429, TOO_MANY, "too many tails are open"),
    ),
    is_stream=True,
)
async def tail_topic(call: tuple[Proxy, Request]) -> Response:
    proxy, request = call
    accepted(request.headers.get("accept"), (EVENT_STREAM,))
    return EventStream(proxy, request, options(request))


def routes(proxy: Proxy) -> list[BaseRoute]:
    def bind(endpoint: Callable[..., Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            return await endpoint((proxy, request))

        return serve

    async def over_web_socket(socket: WebSocket) -> None:
        await serve_web_socket(proxy, socket)

    return [*TAIL.routes(bind), ServiceWebSocketRoute(PATH, over_web_socket, needs=Need.READ)]


def options(connection: HTTPConnection) -> TailOptions:
    return options_of(connection.query_params, connection.headers.get("last-event-id"))


@asynccontextmanager
async def opened(proxy: Proxy, connection: HTTPConnection, chosen: TailOptions) -> AsyncIterator[TailReader]:
    """A reader that knows its partitions. It counts as a tail while it is open."""
    limit = proxy.settings.tails_max
    if proxy.tails >= limit:
        raise refusal(429, TOO_MANY, f"{limit} tails are open, which is the limit; try again later.")
    proxy.tails += 1
    try:
        async with proxy.kafka_of(connection) as kafka:
            topic = connection.path_params["topic_name"]
            reader = TailReader(kafka, topic, chosen, proxy.settings.tail_fetch_bytes_max)
            try:
                await reader.open()
                yield reader
            finally:
                await reader.close()
    finally:
        proxy.tails -= 1


class EventStream(Response):
    """Server-sent events. The id of an event is the position behind it."""

    def __init__(self, proxy: Proxy, request: Request, chosen: TailOptions) -> None:
        super().__init__()
        self._proxy = proxy
        self._request = request
        self._options = chosen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with opened(self._proxy, self._request, self._options) as reader:
            headers = [
                (b"content-type", EVENT_STREAM.encode()),
                (b"cache-control", b"no-store"),
                (b"x-accel-buffering", b"no"),
            ]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send(body(b"retry: %d\n\n" % RETRY_MS))
            writing = asyncio.create_task(self._write(reader, send))
            await until_gone(writing, self._gone(receive))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, reader: TailReader, send: Send) -> None:
        async for message in messages(self._proxy, reader, self._options):
            await send(body(event_of(message)))

    async def _gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass


def body(data: bytes) -> dict[str, object]:
    return {"type": "http.response.body", "body": data, "more_body": True}


def event_of(message: Message) -> bytes:
    place = f"id: {message.position}\n" if message.position else ""
    if message.kind is Kind.ALIVE:
        return f"{place}: alive\n\n".encode()
    name = "" if message.kind is Kind.RECORD else f"event: {message.kind.value}\n"
    return f"{place}{name}data: {{{message.fields}}}\n\n".encode()


async def serve_web_socket(proxy: Proxy, socket: WebSocket) -> None:
    if not may_open(socket, proxy.settings.origins):
        raise refusal(
            403, 403, "Pages of other origins may not open a tail: see access.control.allow.origin."
        )
    chosen = options(socket)
    async with opened(proxy, socket, chosen) as reader:
        await socket.accept()
        writing = asyncio.create_task(write_messages(proxy, reader, chosen, socket))
        await until_gone(writing, until_closed(socket))
        if not writing.cancelled():
            code = GOING_AWAY if proxy.stopping.is_set() else writing.result()
            await socket.close(code)


async def write_messages(proxy: Proxy, reader: TailReader, chosen: TailOptions, socket: WebSocket) -> int:
    """Write all messages. Returns the code to close with."""
    async for message in messages(proxy, reader, chosen):
        if message.kind is not Kind.ALIVE:
            place = f',"id":"{message.position}"' if message.position else ""
            await socket.send_text(f'{{"kind":"{message.kind.value}",{message.fields}{place}}}')
        if message.kind is Kind.ERROR:
            return INTERNAL_ERROR
    return NORMAL


async def until_closed(socket: WebSocket) -> None:
    """Messages of the client are dropped; the end of its connection ends the tail."""
    try:
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass
    except WebSocketDisconnect:
        return


async def until_gone(writing: asyncio.Task[object], leaving: Awaitable[None]) -> None:
    """Wait until everything is written, or the client left."""
    gone = asyncio.ensure_future(leaving)
    try:
        await asyncio.wait({writing, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (writing, gone):
            task.cancel()
        await asyncio.wait({writing, gone})
    if not writing.cancelled() and (error := writing.exception()) is not None:
        raise error


def may_open(socket: WebSocket, origins: Collection[str]) -> bool:
    """Browsers send the credentials of a site with every WebSocket, whichever page opens it. So the page must
    be of the proxy itself, or of an origin that a setting allows."""
    origin = socket.headers.get("origin")
    if origin is None or origin in origins or "*" in origins:
        return True
    return urlsplit(origin).netloc == socket.headers.get("host")
