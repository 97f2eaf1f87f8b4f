"""Events of lineage reach a server that speaks OpenLineage, and no server keeps a pipeline from its work."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openlineage.client", reason="needs the extra `pipeline`")
pytest.importorskip("pyspark", reason="needs the extra `pipeline`")

from barnabas.engine.timeline import Entry
from barnabas.pipeline import FilesSource, Pipeline, Schema, Secret, Staging
from barnabas.pipeline.ingest.results import BatchResult, TableChange
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.lineage.log import EventLog
from barnabas.pipeline.lineage.openlineage import event
from barnabas.pipeline.lineage.pipeline_graph import graph_of
from barnabas.pipeline.lineage.sending import EVENTS_MAX, LineageSender
from barnabas.pipeline.observe.recorder import RunRecorder
from barnabas.pipeline.spec.model import LineageServer
from barnabas.pipeline.spec.state_folder import state_folder
from barnabas.testing.waiting import wait_until


class Receiver:
    """A server of events. It answers with these statuses, then with 201."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.statuses: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = receiver.statuses.pop(0) if receiver.statuses else 201
                receiver.paths.append(self.path)
                receiver.headers.append(dict(self.headers))
                if status == 201:
                    receiver.events.append(json.loads(body))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


def people(folder: Path, lineage: LineageServer) -> Pipeline:
    return Pipeline(
        name="shop",
        lake=str(folder / "lake"),
        sources=[FilesSource(name="people", path=str(folder), schema=Schema("id BIGINT, name STRING"))],
        staging=[Staging(name="people", source="people", key=["id"])],
        lineage=lineage,
    )


def batch(number: int) -> BatchResult:
    now = datetime.now(UTC)
    changed = (TableChange(TableName(Zone.STAGING, "people"), number, 2),)
    return BatchResult(
        pipeline="shop",
        source="people",
        batch=number,
        rows_in=2,
        accepted=2,
        bytes=20,
        started=now,
        ended=now,
        changed=changed,
    )


def test_events_of_batches_arrive_with_the_token_and_are_in_the_file_too(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINEAGE_KEY", "sesame")
    pipeline = people(tmp_path, LineageServer(receiver.url, token=Secret("${env:LINEAGE_KEY}")))
    recorder = RunRecorder(pipeline)
    recorder.batch(batch(1), 0, streaming=False)
    recorder.batch(batch(2), 0, streaming=False)
    recorder.close()
    assert len(receiver.events) == 4
    assert receiver.events == list(EventLog(state_folder(pipeline)).events())
    assert {each["job"]["name"] for each in receiver.events} == {"shop.staging.people", "shop.raw.people"}
    assert {each["Authorization"] for each in receiver.headers} == {"Bearer sesame"}
    assert set(receiver.paths) == {"/api/v1/lineage"}
    assert "sesame" not in json.dumps(receiver.events)


def test_a_server_that_is_away_gets_the_events_when_it_is_back(
    receiver: Receiver, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "barnabas.pipeline")
    receiver.statuses = [503, 500, 429]
    recorder = RunRecorder(people(tmp_path, LineageServer()))
    recorder._sender = sender = LineageSender(LineageServer(receiver.url), pause_s=0.01)
    recorder.batch(batch(1), 0, streaming=False)
    wait_until(lambda: sender.sent == 2)
    # An event that the server does not understand is dropped, and does not hold up the next ones.
    receiver.statuses = [422]
    recorder.batch(batch(2), 0, streaming=False)
    wait_until(lambda: sender.sent + sender.dropped == 4)
    recorder.close()
    assert (sender.sent, sender.dropped, len(receiver.events)) == (3, 1, 3)
    # Clients of earlier tests may still warn of brokers that are gone.
    of_lineage = [each.message for each in caplog.records if each.message.startswith("lineage:")]
    assert [message.partition(":")[2][:30] for message in of_lineage] == [
        " events cannot be sent: 503 Se",
        " events are sent again",
        " the server refuses an event: ",
    ]


def test_without_a_server_the_work_goes_on_and_the_queue_is_bounded(tmp_path: Path) -> None:
    recorder = RunRecorder(people(tmp_path, LineageServer("http://127.0.0.1:1", timeout_s=1)))
    sender = recorder._sender
    assert sender is not None
    recorder.batch(batch(1), 0, streaming=False)
    graph = graph_of(people(tmp_path, LineageServer()))
    one = event(graph, graph.nodes["raw.people"], Entry("source", "people", "1", 1.0, 2.0), streaming=False)
    for _ in range(2 * EVENTS_MAX):
        sender.send(one)
    assert sender.dropped >= EVENTS_MAX and sender.sent == 0
    recorder.close()
    assert not sender._thread.is_alive()
