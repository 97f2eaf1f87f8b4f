"""Receivers of alerts for tests: a webhook server and an SMTP server of this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from barnabas.testing.ports import free_ports


class Hook:
    """A webhook: it keeps each body with its path. `status` is what it responds."""

    def __init__(self) -> None:
        self.bodies: list[tuple[str, Any]] = []
        self.status = 200
        self.url = ""

    def alerts(self, status: str) -> list[dict[str, Any]]:
        return [each for _, body in list(self.bodies) for each in body["alerts"] if each["status"] == status]

    def names(self, status: str) -> list[str]:
        return [each["labels"]["alertname"] for each in self.alerts(status)]


@contextmanager
def hook() -> Iterator[Hook]:
    found = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if found.status == 200:
                found.bodies.append((self.path, body))
            self.send_response(found.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()


class Mails:
    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def handle_DATA(self, server: object, session: object, envelope: Any) -> str:
        self.messages.append(message_from_bytes(envelope.content))
        return "250 OK"


@contextmanager
def smtp_server() -> Iterator[tuple[str, Mails]]:
    from aiosmtpd.controller import Controller

    found = Mails()

    def authenticate(server: object, session: object, envelope: object, mechanism: str, data: Any) -> Any:
        from aiosmtpd.smtp import AuthResult

        return AuthResult(success=(data.login, data.password) == (b"watcher", b"secret"))

    (port,) = free_ports(1)
    controller = Controller(
        found, hostname="127.0.0.1", port=port, authenticator=authenticate, auth_require_tls=False
    )
    controller.start()
    try:
        yield f"127.0.0.1:{port}", found
    finally:
        controller.stop()
