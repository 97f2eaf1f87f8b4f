"""Fronts with TLS for servers that have none: one for HTTP, which asks for a login, and one for any bytes."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx


@contextmanager
def tls_front(url: str, logins: set[str], keystore: str) -> Iterator[str]:
    """The address of the front. `logins` are the values of `Authorization` that it lets pass."""
    client = httpx.Client(timeout=60)

    class Front(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            if self.headers.get("authorization") not in logins:
                self._respond(401, b'{"error": "who is it?"}')
                return
            kind = {"content-type": self.headers.get("content-type", "application/json")}
            found = client.request(self.command, url + self.path, content=body, headers=kind)
            self._respond(found.status_code, found.content)

        do_POST = do_PUT = do_HEAD = do_DELETE = do_GET

        def _respond(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else body)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Front)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(keystore)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        client.close()


@contextmanager
def tls_tunnel(port: int, keystore: str) -> Iterator[int]:
    """A port that speaks TLS, and passes what comes to `port` of this machine."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(keystore)

    def pump(source: Any, target: Any) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass
        finally:
            for each in (source, target):
                each.close()

    def serve(client: socket.socket) -> None:
        try:
            secured = context.wrap_socket(client, server_side=True)
        except (OSError, ssl.SSLError):
            client.close()
            return
        inner = socket.create_connection(("127.0.0.1", port))
        Thread(target=pump, args=(inner, secured), daemon=True).start()
        pump(secured, inner)

    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            try:
                while True:
                    Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
            except OSError:
                return

        thread = Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
