"""The commands status and tail of `barnabas connect`, from responses of workers."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.cli.connect import showing
from barnabas.cli.main import main

WORKER = "127.0.0.1:8083"
URL = ("--url", f"http://{WORKER}")


class Cluster:
    def __init__(self) -> None:
        self.connector: dict[str, Any] = {"state": "RUNNING", "worker_id": WORKER}
        self.told: list[dict[str, Any]] = [{"connector": "a", "task": 0, "retries": 0, "records_in": 5}]
        self.looks: list[dict[str, Any]] = []  # changes of what the task tells, one for each look

    def ask(self, options: object, url: str, path: str) -> Any:
        if path == "/barnabas/tasks":
            if self.looks:
                self.told[0].update(self.looks.pop(0))
            return self.told
        task = {"id": 0, "state": "RUNNING", "worker_id": WORKER}
        return {"a": {"status": {"type": "source", "connector": self.connector, "tasks": [task]}}}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    found = Cluster()
    monkeypatch.setattr(showing, "ask", found.ask)
    return found


def test_a_failed_connector_with_running_tasks_is_shown(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["connect", "status", *URL]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    cluster.connector = {"state": "FAILED", "worker_id": WORKER, "trace": "ValueError: no tables"}
    assert main(["connect", "status", *URL]) == 1
    header, connector, task = capsys.readouterr().out.splitlines()
    assert header.startswith("CONNECTOR") and task.split()[:4] == ["a", "0", "source", "RUNNING"]
    assert connector.split()[:5] == ["a", "-", "source", "FAILED", WORKER]
    assert "ValueError: no tables" in connector


def test_tail_shows_retries_and_errors_that_change_nothing_else(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    error = {"stage": "TASK_PUT", "message": "busy"}
    cluster.looks = [{}, {"retries": 2}, {"last_error": error}, {}]
    assert main(["connect", "tail", *URL, "--count", "4", "--interval", "0.1"]) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert "retries" not in first and "retries 2" in second and third.endswith("TASK_PUT: busy")
