"""Interactive queries over HTTP: typed keys, ranges, windows, where a key lives, errors that help."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.services.asgi import client_of
from tests.streams.spark.local import KEEPS_OLD_RECORDS, LocalApplication

from barnabas.plans.plan import Plan
from barnabas.services.app import ServiceApp
from barnabas.streams import SessionWindows, StreamsBuilder, TimeWindows
from barnabas.streams.serdes.formats import BOOLEAN, BYTES, DOUBLE, LONG, STRING, serde_of
from barnabas.streams.views.http.service import streams_service
from barnabas.streams.views.http.texts import key_of, shown
from barnabas.streams.views.rows import WrongLookup
from barnabas.streams.views.state_view import StateView
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until

TOPOLOGY = """
from barnabas.streams import StreamsBuilder, TimeWindows

def topology(application_id):
    builder = StreamsBuilder(application_id)
    builder.stream("served-visits", key=int, value=str).group_by_key().count(store="counts")
    return builder.build()
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(in_process=False, overrides=KEEPS_OLD_RECORDS) as found:
        yield found


def plan() -> Plan:
    builder = StreamsBuilder("http")
    visits = builder.stream("http-visits", key=int, value=str)
    visits.group_by_key().count(store="counts")
    visits.group_by_key().windowed_by(TimeWindows(10, 10), retention_ms=1000).count(store="windows")
    visits.group_by_key().windowed_by(SessionWindows(5), retention_ms=1000).count(store="sessions")
    return builder.build()


def test_lookups_over_http(broker: Broker, tmp_path: Path) -> None:
    asyncio.run(look_up(broker, tmp_path))


async def look_up(broker: Broker, folder: Path) -> None:
    with LocalApplication(broker, plan(), folder) as application:
        application.create("http-visits")
        application.produce("http-visits", [(at % 5, "x", at) for at in range(20)], key=int)
        application.run()
        service = streams_service(
            lambda: StateView(application.plan, application.client), lambda: "here:7070"
        )
        assert service.why_not_ready() is not None
        await service.start()
        try:
            async with client_of(ServiceApp(service)) as client:

                async def get(path: str, status: int = 200) -> Any:
                    response = await client.get(path)
                    assert response.status_code == status, response.text
                    return response.json()

                found = await get("/stores/counts/keys/3")
                assert (found["key"], found["value"], found["timestamp"]) == (3, 4, 18)
                found = await get("/stores/counts/rows?from=1&to=3")
                assert [(row["key"], row["value"]) for row in found["rows"]] == [(1, 4), (2, 4), (3, 4)]
                found = await get("/stores/counts/rows?limit=2")
                assert ([row["key"] for row in found["rows"]], found["has_more"]) == ([0, 1], True)
                found = await get("/stores/windows/windows/3?from=10&to=10")
                assert found["rows"] == [
                    {"key": 3, "window": {"start": 10, "end": 20}, "value": 2, "timestamp": 18}
                ]
                assert len((await get("/stores/windows/windows?from=10"))["rows"]) == 5
                found = await get("/stores/sessions/sessions/3")
                assert [row["window"] for row in found["rows"]] == [{"start": 3, "end": 18}]
                found = await get("/stores/counts/metadata/3")
                assert found["active_host"] == {"host": "here", "port": 7070}
                assert found["topic"] == "http-counts-changelog"
                assert [each["name"] for each in await get("/stores")] == ["counts", "windows", "sessions"]
                assert (await get("/stores/counts"))["key_format"] == "int64"

                assert "has no key '9'" in (await get("/stores/counts/keys/9", 404))["message"]
                assert "there are: counts" in (await get("/stores/coutns/keys/9", 404))["message"]
                assert "is no key of the format int64" in (await get("/stores/counts/keys/x", 400))["message"]
                assert "has no windows" in (await get("/stores/counts/windows/1", 400))["message"]
                assert "limit is 0" in (await get("/stores/counts/rows?limit=0", 400))["message"]
                assert "position is" in (await get("/stores/counts/keys/1?position=x", 400))["message"]
        finally:
            await service.stop()


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


def test_keys_of_urls_are_typed() -> None:
    assert key_of("a/b", STRING) == "a/b"
    assert key_of("-7", LONG) == -7
    assert key_of("1.5", DOUBLE) == 1.5
    assert key_of("true", BOOLEAN) is True
    assert key_of("AP8", BYTES) == b"\x00\xff"
    assert key_of('{"x":1}', serde_of(Point)) == Point(1)
    assert key_of("[1]", serde_of(dict)) == [1]
    for text, serde in (
        ("x", LONG),
        ("yes", BOOLEAN),
        ("!", BYTES),
        ("{", serde_of(dict)),
        ("{}", serde_of(Point)),
    ):
        with pytest.raises(WrongLookup, match="is no key of the format"):
            key_of(text, serde)


def test_values_that_json_lacks_are_texts() -> None:
    value = {"a": float("nan"), "b": b"\x00", "c": Point(1), "d": {2}, "e": (1, None)}
    assert shown(value) == {"a": "nan", "b": "AA==", "c": {"x": 1, "y": 0}, "d": [2], "e": [1, None]}


@pytest.mark.long
def test_the_serving_program_answers_and_stops(broker: Broker, tmp_path: Path) -> None:
    """The program that the supervisor starts for `--port`; an application without Spark beside it."""
    (tmp_path / "served.py").write_text(TOPOLOGY)
    builder = StreamsBuilder("served")
    builder.stream("served-visits", key=int, value=str).group_by_key().count(store="counts")
    with LocalApplication(broker, builder.build(), tmp_path / "state") as application:
        application.create("served-visits")
        application.produce("served-visits", [(1, "x", 1), (1, "x", 2)], key=int)
        application.run()
        arguments = {
            "topology": "served:topology",
            "application_id": "served",
            "servers": broker.bootstrap,
            "settings": {"state.dir": str(tmp_path / "state"), "http.listeners": "http://127.0.0.1:0"},
        }
        command = [sys.executable, "-m", "barnabas.streams.run.serving", json.dumps(arguments)]
        process = subprocess.Popen(command, cwd=tmp_path)
        try:
            ready = tmp_path / "state" / "served" / "serving.json"
            wait_until(lambda: ready.exists() or process.poll() is not None, 60)
            url = json.loads(ready.read_text())["url"]
            with urllib.request.urlopen(f"{url}/stores/counts/keys/1") as response:
                assert json.load(response)["value"] == 2
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        assert not ready.exists()
