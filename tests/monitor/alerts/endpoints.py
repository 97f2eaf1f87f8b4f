"""Small endpoints for looks: pages over HTTP that a test changes, and a TLS listener with a certificate."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from barnabas.security.tls.certificates import issue, new_authority


class Pages:
    """`pages` has the body of each path; others are not found."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.status = 200
        self.url = ""

    @property
    def netloc(self) -> str:
        return self.url.removeprefix("http://")


@contextmanager
def pages(**given: str) -> Iterator[Pages]:
    found = Pages()
    found.pages = {f"/{path}": body for path, body in given.items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = found.pages.get(self.path)
            data = (body or "not found").encode()
            self.send_response(found.status if body is not None else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def tls_listener(folder: Path, days: int, days_ago: int = 0) -> Iterator[str]:
    """The address of a listener whose certificate ends so many days after it was issued. Its authority is in
    `trust.pem`."""
    now = datetime.now(UTC)
    authority = new_authority("CN=authority", now)
    (folder / "trust.pem").write_bytes(authority.certificate_pem)
    begins = now - timedelta(days=days_ago)
    issued = issue(authority, "CN=node-1", begins, hosts=["127.0.0.1"], days=days)
    file = folder / f"node-{days}.pem"
    file.write_bytes(issued.key_pem + issued.chain_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                plain, _ = server.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), context.wrap_socket(plain, server_side=True) as secured:
                secured.recv(1)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(10)
