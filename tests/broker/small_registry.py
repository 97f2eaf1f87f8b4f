"""A schema registry as small as a broker needs one: which subjects an id is registered under."""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class SmallRegistry:
    """`schemas`: by id, the subjects and the schema. It can be slow, refuse, and ask for a password."""

    def __init__(self, login: str | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.schemas: dict[int, tuple[list[str], dict[str, str]]] = {}
        self.guids: dict[str, int] = {}
        self.asked: list[str] = []
        self.is_failing = False
        self.garbage: bytes | None = None  # sent instead of what was asked for
        self.may_respond = threading.Event()
        self.may_respond.set()
        self.is_asked = threading.Semaphore(0)
        self.login = None if login is None else "Basic " + base64.b64encode(login.encode()).decode()
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.respond(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._scheme = "http"
        if tls is not None:
            self._scheme = "https"
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def register(
        self, schema_id: int, *subjects: str, schema: str = '"string"', schema_type: str = "AVRO"
    ) -> None:
        self.schemas[schema_id] = (list(subjects), {"schema": schema, "schemaType": schema_type})

    def respond(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        self.is_asked.release()
        self.may_respond.wait(30)
        if self.login is not None and request.headers["Authorization"] != self.login:
            status, body = 401, {"error_code": 401, "message": "Unauthorized"}
        elif self.is_failing:
            status, body = 500, {"error_code": 50001, "message": "Error in the backend datastore"}
        else:
            status, body = self._found(request.path.strip("/").split("/"))
        data = json.dumps(body).encode() if self.garbage is None else self.garbage
        request.send_response(status if self.garbage is None else 200)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        with contextlib.suppress(ConnectionError):  # a broker hangs up on answers that are too long
            request.wfile.write(data)

    def _found(self, parts: list[str]) -> tuple[int, Any]:
        if parts[:2] == ["schemas", "guids"] and parts[2] in self.guids:
            return 200, [{"context": ".", "id": self.guids[parts[2]]}]
        if parts[:2] == ["schemas", "ids"] and parts[2].isdigit() and int(parts[2]) in self.schemas:
            subjects, schema = self.schemas[int(parts[2])]
            return 200, subjects if parts[3:] == ["subjects"] else schema
        return 404, {"error_code": 40403, "message": "Schema not found"}

    def close(self) -> None:
        self.may_respond.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
