"""A registry as Spark's workers see it: schemas by id and by version over HTTP, and what was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class Registry:
    """Versions are given in order; ids count over all subjects."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.by_id: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.authorizations: set[str | None] = set()
        self.is_broken = False

    def add(self, subject: str, schema: object, schema_type: str = "AVRO", references: Any = ()) -> int:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        version = 1 + sum(one["subject"] == subject for one in self.by_id)
        found = {"id": len(self.by_id) + 1, "subject": subject, "version": version, "schema": text}
        self.by_id.append({**found, "schemaType": schema_type, "references": list(references)})
        return len(self.by_id)

    def answer(self, path: str) -> dict[str, Any] | None:
        self.asked.append(path)
        match [unquote(part) for part in path.strip("/").split("/")]:
            case ["schemas", "ids", number]:
                return self.by_id[int(number) - 1] if 0 < int(number) <= len(self.by_id) else None
            case ["subjects", subject, "versions", version]:
                found = [one for one in self.by_id if one["subject"] == subject]
                if version in ("latest", "-1"):
                    return found[-1] if found else None
                return found[int(version) - 1] if 0 < int(version) <= len(found) else None
            case ["config", subject]:
                return {"compatibilityLevel": self.levels.get(subject, "BACKWARD")}
        return None

    @property
    def levels(self) -> dict[str, str]:
        return self.__dict__.setdefault("_levels", {})


@contextmanager
def registry() -> Iterator[Registry]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.authorizations.add(self.headers.get("Authorization"))
            body = found.answer(urlsplit(self.path).path)
            status = 500 if found.is_broken else 200 if body is not None else 404
            failure = {"error_code": 40403 if status == 404 else 50001, "message": "not here"}
            data = json.dumps(body if status == 200 else failure).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: object) -> None:
            """Nothing: tests look at `asked`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Registry(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
