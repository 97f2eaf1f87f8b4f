"""An HTTP server on loopback whose responses a test decides, request by request."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import orjson


@dataclass
class Seen:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class Reply:
    status: int = 200
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut_at: int | None = None  # the connection breaks behind so many bytes of the body
    waits_for: threading.Event | None = None


class HttpServer:
    """`decide` is asked for each request; what came is in `seen`. It keeps its port through `stop` and
    `start`. With a context it speaks TLS."""

    is_needed = True

    def __init__(self, decide: Callable[[Seen], Reply], tls: ssl.SSLContext | None = None) -> None:
        self.seen: list[Seen] = []
        self.decide = decide
        self._tls = tls
        self._open: set[socket.socket] = set()
        self.port = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                outer._open.add(self.request)
                super().setup()

            def finish(self) -> None:
                with suppress(OSError):  # of a connection that `stop` cut
                    super().finish()
                outer._open.discard(self.request)

            def do(self) -> None:
                address = urlsplit(self.path)
                length = int(self.headers.get("content-length") or 0)
                one = Seen(
                    self.command,
                    address.path,
                    dict(parse_qsl(address.query)),
                    {name.lower(): value for name, value in self.headers.items()},
                    self.rfile.read(length),
                )
                outer.seen.append(one)
                reply = outer.decide(one)
                if reply.waits_for is not None:
                    reply.waits_for.wait(60)
                body = reply.body if isinstance(reply.body, bytes) else orjson.dumps(reply.body)
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body[: reply.cut_at])
                self.close_connection = reply.cut_at is not None

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do

            def log_message(self, *_: Any) -> None:
                pass

        self._handler = Handler
        self._bind()

    def _bind(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler)
        self._server.daemon_threads = True
        if self._tls is not None:  # each connection shakes hands in its own thread
            self._server.socket = self._tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = self._server.server_address[1]
        self.url = f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    def start(self) -> None:
        if self._server.socket.fileno() < 0:
            self._bind()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Refuse connections, and cut those that are open."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
