"""Callers with names: rights of statements and SELECTs, and connectors through Connect."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from sql.server.running import running


def test_callers_prove_their_names_and_have_rights(broker: str, service_id: str, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("reader: r,readers\nwriter: w,writers\n")
    given = {
        "authentication.method": "BASIC",
        "barnabas.authentication.users.file": str(users),
        "barnabas.authentication.roles.read": "readers",
        "barnabas.authentication.roles.write": "writers",
    }
    with running(broker, service_id, **given) as server:

        def ask(path: str, body: object, user: tuple[str, str] | None) -> tuple[int, int]:
            found = httpx.post(server.url + path, json=body, auth=user, trust_env=False, timeout=30)
            code = found.json().get("error_code", 0) if found.status_code >= 400 else 0
            return found.status_code, code

        statement, select = {"ksql": "SHOW TYPES;"}, {"sql": "SELECT * FROM nobody;"}
        assert ask("/ksql", statement, None) == (401, 40100)
        assert ask("/ksql", statement, ("writer", "wrong")) == (401, 40100)
        assert ask("/ksql", statement, ("reader", "r")) == (403, 40300)
        assert ask("/ksql", statement, ("writer", "w")) == (200, 0)
        assert ask("/query-stream", select, ("reader", "r")) == (400, 40001)
        assert ask("/ksql/terminate", {}, ("writer", "w")) == (403, 40300)
        assert httpx.get(server.url + "/healthcheck", trust_env=False).status_code == 200


class Connect(BaseHTTPRequestHandler):
    """Connect's responses to the requests of these tests."""

    configs: dict[str, dict[str, str]] = {}

    def do_GET(self) -> None:
        name, _, part = self.path.removeprefix("/connectors/").partition("/")
        config = self.configs.get(name)
        status = {"name": name, "type": "source", "connector": {"state": "RUNNING"},
                  "tasks": [{"id": 0, "state": "RUNNING"}]}  # fmt: skip
        if self.path.startswith("/connectors?"):
            found: object = {
                each: {"info": {"type": "source", "config": config}, "status": {**status, "name": each}}
                for each, config in self.configs.items()
            }
        elif self.path == "/connector-plugins":
            found = [{"class": "org.example.Clock", "type": "source", "version": "1"}]
        elif config is None:
            self._respond(404, {"error_code": 404, "message": "no such connector"})
            return
        else:
            found = {"status": status, "topics": {name: {"topics": ["t"]}}}.get(part, {"config": config})
        self._respond(200, found)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if body["config"]["connector.class"] == "Nonsense":
            self._respond(400, {"error_code": 400, "message": "no class Nonsense"})
            return
        self.configs[body["name"]] = body["config"]
        self._respond(201, {**body, "type": "source", "tasks": []})

    def do_DELETE(self) -> None:
        del self.configs[self.path.removeprefix("/connectors/")]
        self._respond(204, None)

    def _respond(self, status: int, body: object) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:
        return


@pytest.fixture
def connect() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Connect) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_connectors_are_made_listed_described_and_dropped(broker: str, service_id: str, connect: str) -> None:
    with running(broker, service_id, **{"ksql.connect.url": connect}) as server:
        [made] = server.ksql(
            "CREATE SOURCE CONNECTOR `clock` WITH ('connector.class'='org.example.Clock', 'ms'=5);"
        )
        assert made["info"]["config"]["ms"] == "5"
        assert (
            "already exists"
            in server.refused("CREATE SOURCE CONNECTOR `clock` WITH ('connector.class'='x');")["message"]
        )
        [row] = server.ksql("SHOW SOURCE CONNECTORS;")[0]["connectors"]
        assert (row["name"], row["className"], row["state"]) == (
            "clock",
            "org.example.Clock",
            "RUNNING (1/1 tasks RUNNING)",
        )
        assert server.ksql("SHOW SINK CONNECTORS;")[0]["connectors"] == []
        assert (
            server.ksql("SHOW CONNECTOR PLUGINS;")[0]["connectorPlugins"][0]["className"]
            == "org.example.Clock"
        )
        assert server.ksql("DESCRIBE CONNECTOR `clock`;")[0]["topics"] == ["t"]
        assert (
            "no class Nonsense"
            in server.refused("CREATE SINK CONNECTOR n WITH ('connector.class'='Nonsense');")["message"]
        )
        assert server.ksql("DROP CONNECTOR `clock`;")[0]["connectorName"] == "clock"
        assert "does not exist" in server.refused("DROP CONNECTOR `clock`;")["message"]
