"""Workers as processes that are killed: their tasks move and go on without loss, exactly once if asked."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until
from connect.records_of import values_of
from connect.worker_processes import FILE_SINK, FILE_SOURCE, WorkerProcess

LINES = 20_000


def owner_of_task(worker: WorkerProcess, name: str) -> str:
    found = worker.get(f"/connectors/{name}/status") or {}
    tasks = found.get("tasks") or [{}]
    return str(tasks[0].get("worker_id", "")) if tasks[0].get("state") == "RUNNING" else ""


def write_lines(path: Path, first: int, last: int) -> None:
    with path.open("a") as file:
        file.write("".join(f"line {number}\n" for number in range(first, last)))


def killed_in_the_middle(tmp_path: Path, once: str) -> Counter[str]:
    """Kill the worker that reads a file, twice, while lines are appended; what the topic has in the end."""
    source, sunk = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("")
    more = {"exactly__once__source__support": once}
    with Broker() as broker:
        workers = [
            WorkerProcess(tmp_path / "w", broker.bootstrap, "kills", is_apache=False, **more)
            for _ in range(3)
        ]
        try:
            for each in workers:
                each.wait()
            config = {
                "connector.class": FILE_SOURCE,
                "file": str(source),
                "topic": "lines",
                "batch.size": "100",
            }
            workers[0].create("in", config)
            workers[0].create("out", {"connector.class": FILE_SINK, "file": str(sunk), "topics": "lines"})
            for part in range(4):
                write_lines(source, part * LINES // 4, (part + 1) * LINES // 4)
                seen = sunk.stat().st_size if sunk.exists() else 0
                wait_until(lambda seen=seen: sunk.exists() and sunk.stat().st_size > seen, 60)  # type: ignore[misc]
                if part % 2 == 0:
                    owner = next(each for each in workers if each.id == owner_of_task(workers[-1], "in"))
                    owner.kill()
                    workers.remove(owner)
                    wait_until(
                        lambda: owner_of_task(workers[-1], "in") in {each.id for each in workers},
                        60,
                        workers[-1].said,
                    )
            wait_until(lambda: len(set(sunk.read_text().split("\n"))) > LINES, 90, workers[-1].said)
            deadline = time.monotonic() + 60
            while len(found := Counter(values_of(broker.bootstrap, "lines"))) < LINES:
                assert time.monotonic() < deadline
        finally:
            for each in workers:
                each.stop()
    return found


@pytest.mark.long
@pytest.mark.parametrize("once", ["disabled", "enabled"])
def test_tasks_of_killed_workers_go_on_without_loss(tmp_path: Path, once: str) -> None:
    found = killed_in_the_middle(tmp_path, once)
    assert found.keys() == {f"line {number}" for number in range(LINES)}
    if once == "enabled":
        assert set(found.values()) == {1}
