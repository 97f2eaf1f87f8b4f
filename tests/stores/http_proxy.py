"""A proxy of HTTP on loopback: it passes requests on, and opens tunnels for TLS."""

from __future__ import annotations

import base64
import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


@dataclass
class HttpProxy:
    """`asked` has the method and the target of each request."""

    port: int
    asked: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def http_proxy(login: str = "") -> Iterator[HttpProxy]:
    """A proxy; with a login, `user:password`, it refuses requests without it."""
    wanted = f"Basic {base64.b64encode(login.encode()).decode()}" if login else None

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def refuses(self) -> bool:
            found.asked.append((self.command, self.path))
            if self.headers.get("proxy-authorization") == wanted:
                return False
            self.send_response(407)
            self.send_header("content-length", "0")
            self.end_headers()
            return True

        def do_CONNECT(self) -> None:
            if self.refuses():
                return
            host, _, port = self.path.rpartition(":")
            with socket.create_connection((host, int(port))) as target:
                self.send_response(200)
                self.end_headers()
                back = threading.Thread(target=pump, args=(target, self.connection), daemon=True)
                back.start()
                pump(self.connection, target)
                back.join()
            self.close_connection = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.refuses():
                return
            address = urlsplit(self.path)
            link = http.client.HTTPConnection(address.hostname or "", address.port)
            query = f"?{address.query}" if address.query else ""
            link.request(self.command, address.path + query, body, dict(self.headers))
            response = link.getresponse()
            data = response.read()
            link.close()
            self.send_response(response.status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_POST

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found = HttpProxy(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass
