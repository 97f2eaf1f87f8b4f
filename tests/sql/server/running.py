"""A SQL server on a port, in a thread of the test's process, over an engine in memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from barnabas.services.hosting.process import serve
from barnabas.services.settings.loading import load_settings
from barnabas.sql.server.service import MakeEngine, service_with
from barnabas.testing.waiting import wait_until
from sql.server.fake_engine import FakeEngine, World

START_S_MAX = 60.0
QUICK = {"ksql.heartbeat.session.timeout.ms": "30000", "barnabas.http.access.log": "false"}


class RunningServer:
    def __init__(self, url: str, world: World, engines: list[FakeEngine]) -> None:
        self.url = url
        self.world = world
        self.engines = engines
        self.http = httpx.Client(base_url=url, timeout=60, trust_env=False)

    def post(self, path: str, body: Mapping[str, Any], **headers: str) -> httpx.Response:
        return self.http.post(path, json=body, headers={k.replace("_", "-"): v for k, v in headers.items()})

    def ksql(self, text: str, **more: Any) -> list[dict[str, Any]]:
        response = self.post("/ksql", {"ksql": text, **more})
        assert response.status_code == 200, response.text
        found: list[dict[str, Any]] = response.json()
        return found

    def refused(self, text: str, **more: Any) -> dict[str, Any]:
        response = self.post("/ksql", {"ksql": text, **more})
        assert response.status_code >= 400, response.text
        found: dict[str, Any] = response.json()
        return found

    def rows(self, text: str, **properties: str) -> list[list[Any]]:
        response = self.post("/query-stream", {"sql": text, "properties": properties})
        assert response.status_code == 200, response.text
        return [httpx.Response(200, text=line).json() for line in response.text.splitlines()[1:]]

    def wait_until_leading(self) -> None:
        wait_until(lambda: "barnabas_sql_leading 1.0" in self.http.get("/metrics").text, seconds=30)


@contextmanager
def running(
    bootstrap: str, service_id: str, world: World | None = None, make: MakeEngine | None = None, **given: str
) -> Iterator[RunningServer]:
    world = world or World()
    engines: list[FakeEngine] = []

    def fake(*_: object) -> FakeEngine:
        engines.append(FakeEngine(world, settings.given.get("ksql.advertised.listener", "node")))
        return engines[-1]

    settings = load_settings(
        "sql",
        None,
        {
            "listeners": "http://127.0.0.1:0",
            "bootstrap.servers": bootstrap,
            "ksql.service.id": service_id,
            **QUICK,
            **given,
        },
    )
    found: list[str] = []
    failures: list[BaseException] = []
    is_ready = threading.Event()
    loop = asyncio.new_event_loop()
    tasks: list[asyncio.Task[None]] = []

    async def main() -> None:
        def ready(listeners: object) -> None:
            found.extend(map(str, listeners))  # type: ignore[call-overload]
            is_ready.set()

        tasks.append(
            asyncio.ensure_future(serve(settings, lambda each: service_with(each, make or fake), ready))
        )
        try:
            await tasks[0]
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            failures.append(error)
            is_ready.set()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),), daemon=True)
    thread.start()
    try:
        assert is_ready.wait(START_S_MAX), "the server did not start"
        if failures:
            raise failures[0]
        server = RunningServer(found[0], world, engines)
        yield server
        server.http.close()
    finally:
        loop.call_soon_threadsafe(tasks[0].cancel)
        thread.join(START_S_MAX)
        assert not thread.is_alive(), "the server did not stop"
        loop.close()
