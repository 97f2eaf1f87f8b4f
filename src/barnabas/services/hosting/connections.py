"""One connection of a service: uvicorn's, with bounds on headers, their time, and connections at once.

In: bytes of strangers. Out: requests to the application; 400, 431 and 503 in the API's form for what never
becomes a request. A connection that sends no request, or sends its headers too slowly, is closed. The name in
the client's certificate goes into the state of each request. Does not know: routes, callers.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from barnabas.security.tls.distinguished_names import subject_name
from barnabas.services.callers.guard import PEER_SUBJECT
from barnabas.services.hosting.http2 import PREFACE, Bounds, Http2Connection
from barnabas.services.jetty_metrics import ConnectionCounts

UPGRADE_TO_HTTP_2 = re.compile(rb"(?im)^upgrade:[ \t]*h2c[ \t]*\r\n")
HEADERS_MAX = 200
HTTP_2 = "h2"


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    connections_max: int = 10_000
    header_bytes_max: int = 16_384
    header_s_max: float = 10.0
    stall_s_max: float = 60.0  # for a client that takes nothing while its response waits


class StallTimer:
    """Aborts a connection whose client takes nothing. `close` would wait for such a client without end."""

    __slots__ = ("_timer",)

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, transport: asyncio.Transport, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, transport.abort)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class BoundedConnection(HttpToolsProtocol):
    """`limits`, `suites` and `counts` belong to the class that `bounded_connection` makes for a listener."""

    limits = ConnectionLimits()
    counts = ConnectionCounts()
    suites: frozenset[str] = frozenset()  # of TLS 1.3 that are allowed; empty: all

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._header_bytes = self._line_bytes = 0
        self._header_timer: asyncio.TimerHandle | None = None
        self._stall = StallTimer()
        self._awaits_headers = True
        self._has_begun = False
        self._are_headers_too_large = False
        self._first_bytes: bytes | None = b""  # until it is known whether they begin HTTP/2

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.counts.opened += 1
        if len(self.connections) > self.limits.connections_max:
            self._refuse(503, "the service has too many connections; try again", "retry-after: 1\r\n")
            return
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            cipher = tls.cipher()
            if self.suites and cipher is not None and cipher[0] not in self.suites:
                transport.abort()
                return
            certificate = tls.getpeercert(binary_form=True)
            if certificate:
                name = subject_name(x509.load_der_x509_certificate(certificate))
                self.app_state = {**self.app_state, PEER_SUBJECT: name}
            if tls.selected_alpn_protocol() == HTTP_2:
                self._become_http2(b"")
                return
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stall.end()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        self._stall.begin(self.transport, self.limits.stall_s_max)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stall.end()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._first_bytes is not None:
            data, self._first_bytes = self._first_bytes + data, None
            if data.startswith(PREFACE):
                self._become_http2(data)
                return
            if PREFACE.startswith(data):
                self._first_bytes = data
                return
        if self._awaits_headers and self._has_begun:
            # The parser keeps a line until it ends, so its bytes are counted as they arrive.
            self._line_bytes += len(data)
            if self._line_bytes > self.limits.header_bytes_max:
                self._are_headers_too_large = True
                self.send_400_response("")
                return
        if not self._has_begun:
            data = without_upgrade(data)
        super().data_received(data)
        if self._awaits_headers and self._header_timer is None and not self.transport.is_closing():
            self._start_timer()

    def _become_http2(self, data: bytes) -> None:
        """Hand the connection over. The frame counts it and closes it as before."""
        self._stop_timer()
        transport, connections = self.transport, self.connections
        bounds = Bounds(self.limits.header_bytes_max, self.limits.stall_s_max, self.timeout_keep_alive)
        connection = Http2Connection(self.app, self.app_state, self.tasks, bounds)
        connections.discard(self)
        connections.add(connection)  # type: ignore[arg-type]  # it is closed like the others
        transport.set_protocol(connection)
        connection.begin(transport, data, lambda: connections.discard(connection))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._header_bytes = self._line_bytes = 0
        self._awaits_headers = self._has_begun = True

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._awaits_headers = False
        self._stop_timer()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        if self._are_headers_too_large:
            self._refuse(
                431, f"the headers have more than {self.limits.header_bytes_max} bytes or {HEADERS_MAX} lines"
            )
        else:
            self._refuse(400, "this is no HTTP request")

    def _count(self, size: int) -> None:
        self._header_bytes += size
        too_many = len(self.headers) >= HEADERS_MAX
        if self._header_bytes > self.limits.header_bytes_max or too_many:
            self._are_headers_too_large = True
            raise ValueError("the headers are too large")  # the parser stops, and calls send_400_response

    def _refuse(self, status: int, message: str, headers: str = "") -> None:
        body = json.dumps({"error_code": status, "message": message}).encode()
        head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n{headers}"
        head += "connection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head.encode() + body)
        self.transport.close()

    def _start_timer(self) -> None:
        self._header_timer = self.loop.call_later(self.limits.header_s_max, self._header_time_is_over)

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _header_time_is_over(self) -> None:
        self._header_timer = None
        if self._awaits_headers and not self.transport.is_closing():
            self.transport.close()


def without_upgrade(data: bytes) -> bytes:
    """The first bytes of a connection without the wish to go on with HTTP/2. A server may ignore it, but
    the parser would leave out the body of such a request."""
    head, end, body = data.partition(b"\r\n\r\n")
    if not end or b"h2c" not in head:
        return data
    return UPGRADE_TO_HTTP_2.sub(b"", head + b"\r\n") + b"\r\n" + body


def bounded_connection(
    limits: ConnectionLimits, suites: frozenset[str], counts: ConnectionCounts
) -> type[BoundedConnection]:
    """The class of connections with these bounds."""
    return type(
        "BoundedConnection", (BoundedConnection,), {"limits": limits, "suites": suites, "counts": counts}
    )


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """A connection that became a WebSocket."""

    stall_s_max = 60.0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._stall = StallTimer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stall.end()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        self._stall.begin(self.transport, self.stall_s_max)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stall.end()
        super().resume_writing()


def bounded_web_socket(limits: ConnectionLimits) -> type[BoundedWebSocket]:
    """The class of WebSockets with these bounds."""
    return type("BoundedWebSocket", (BoundedWebSocket,), {"stall_s_max": limits.stall_s_max})
