"""Applications beside /metrics on the metrics port: each has a path, and is loaded at its first request.

In: the head of a request, its connection, an ASGI application. Out: the application's response, on a
connection that is closed behind it. Bodies need a Content-Length; the application bounds them. Does not know:
what applications serve. They stand above the broker, so they are loaded by name.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

log = logging.getLogger("barnabas.metrics")
JOLOKIA = "/jolokia"
CHUNK_BYTES = 64 * 1024
CONTENT_LENGTH_DIGITS_MAX = 12

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


class NotServed(Exception):
    """Why an application does not get the request; the status, and a sentence for the caller."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status


class Applications:
    def __init__(self, makers: Mapping[str, Callable[[], Application]]) -> None:
        self._makers = makers
        self._made: dict[str, Application] = {}

    def find(self, path: str) -> Application | None:
        """The application of a path. NotServed: it needs packages that are not installed."""
        for prefix, make in self._makers.items():
            if path == prefix or path.startswith(f"{prefix}/"):
                if prefix not in self._made:
                    try:
                        self._made[prefix] = make()
                    except ImportError as error:
                        log.error("%s is not served: %s: install barnabas[http]", prefix, error)
                        text = f"{prefix} needs the packages of barnabas[http].\n"
                        raise NotServed("501 Not Implemented", text) from None
                return self._made[prefix]
        return None


def of_broker(broker: Broker) -> Applications:
    """The applications of a node."""

    def jolokia() -> Application:
        from importlib import import_module

        product = {"product": "Barnabas", "vendor": "Barnabas", "version": "4.3.1"}
        service = import_module("barnabas.monitor.jolokia.service")
        found: Application = service.application(broker.metrics.registry, broker.pieces.run, product)
        return found

    return Applications({JOLOKIA: jolokia})


def write(writer: asyncio.StreamWriter, data: bytes) -> None:
    """ConnectionResetError: the peer has disconnected. uvloop would raise a RuntimeError for it."""
    if writer.is_closing():
        raise ConnectionResetError("the peer has disconnected")
    writer.write(data)


async def run(
    application: Application,
    head: bytes,
    target: SplitResult,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Serve one request. NotServed: its body has no length."""
    lines = head.decode("latin-1").split("\r\n")
    headers = [
        (name.strip().lower().encode("latin-1"), value.strip().encode("latin-1"))
        for name, colon, value in (line.partition(":") for line in lines[1:])
        if colon
    ]
    given = dict(headers)
    left = body_size(given)
    if given.get(b"expect", b"").lower() == b"100-continue":
        write(writer, b"HTTP/1.1 100 Continue\r\n\r\n")

    async def receive() -> Message:
        nonlocal left
        data = await reader.read(min(left, CHUNK_BYTES)) if left else b""
        if left and not data:
            return {"type": "http.disconnect"}
        left -= len(data)
        return {"type": "http.request", "body": data, "more_body": left > 0}

    async def send(message: Message) -> None:
        if writer.is_closing():
            return  # nobody is there to get a response, which is no error of the application
        if message["type"] == "http.response.start":
            status = HTTPStatus(message["status"])
            write(writer, f"HTTP/1.1 {status.value} {status.phrase}\r\nConnection: close\r\n".encode())
            for name, value in message.get("headers", ()):
                write(writer, b"%b: %b\r\n" % (name, value))
            write(writer, b"\r\n")
        elif message["type"] == "http.response.body":
            write(writer, message.get("body", b""))
            with suppress(ConnectionError):
                await writer.drain()

    peer = writer.get_extra_info("peername")
    scope: Message = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": lines[0].partition(" ")[0],
        "scheme": "http",
        "path": unquote(target.path),
        "raw_path": target.path.encode("latin-1"),
        "query_string": target.query.encode("latin-1"),
        "root_path": "",
        "headers": headers,
        "client": tuple(peer[:2]) if peer else None,
        "server": None,
        "state": {},
    }
    await application(scope, receive, send)


def body_size(headers: Mapping[bytes, bytes]) -> int:
    if b"transfer-encoding" in headers:
        raise NotServed("411 Length Required", "The body needs a Content-Length.\n")
    text = headers.get(b"content-length", b"0").decode("latin-1")
    if not (text.isascii() and text.isdigit() and len(text) <= CONTENT_LENGTH_DIGITS_MAX):
        raise NotServed("400 Bad Request", "Content-Length is not a number.\n")
    return int(text)
