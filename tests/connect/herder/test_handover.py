"""Topics of an Apache worker are taken over by ours and given back; workers of both kinds share one group."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until
from connect.records_of import values_of
from connect.worker_processes import FILE_SOURCE, WorkerProcess, apache_jars


def append(path: Path, *lines: str) -> None:
    with path.open("a") as file:
        file.write("".join(f"{line}\n" for line in lines))


@pytest.mark.long
@pytest.mark.parametrize("once", ["disabled", "enabled"])
def test_topics_of_an_apache_worker_are_taken_over_and_given_back(tmp_path: Path, once: str) -> None:
    """Also where sources write exactly once: the leader's records are transactions then, on both sides."""
    apache_jars()
    more = {"exactly__once__source__support": once}
    source = tmp_path / "in.txt"
    expected: list[str] = []
    with Broker() as broker:
        for turn, is_apache in enumerate([True, False, True]):
            folder = tmp_path / f"w{turn}"
            worker = WorkerProcess(folder, broker.bootstrap, "handed", is_apache=is_apache, **more)
            try:
                worker.wait()
                if turn == 0:
                    append(source, "apache 1", "apache 2")
                    expected += ["apache 1", "apache 2"]
                    worker.create(
                        "in", {"connector.class": FILE_SOURCE, "file": str(source), "topic": "lines"}
                    )
                    worker.create("paused", {"connector.class": FILE_SOURCE, "file": "/x", "topic": "other"})
                    assert worker.call("PUT", "/connectors/paused/pause").status == 202
                worker.wait_for("in", "RUNNING", 1)
                worker.wait_for("paused", "PAUSED", 1)
                assert worker.get("/connectors") == ["in", "paused"]
                line = f"turn {turn}"
                append(source, line)
                expected.append(line)
                position = source.stat().st_size
                wait_until(
                    lambda worker=worker, position=position: (
                        worker.get("/connectors/in/offsets")  # type: ignore[misc]
                        == {
                            "offsets": [
                                {"partition": {"filename": str(source)}, "offset": {"position": position}}
                            ]
                        }
                    ),
                    60,
                    worker.said,
                )
                assert values_of(broker.bootstrap, "lines") == expected
                assert worker.get("/connectors/in/topics") == {"in": {"topics": ["lines"]}}
            finally:
                worker.stop()


@pytest.mark.long
@pytest.mark.parametrize("first_is_apache", [True, False])
def test_workers_of_both_kinds_share_a_group(tmp_path: Path, first_is_apache: bool) -> None:
    """The first worker leads. The second gets half of the work, and requests to either have an effect."""
    apache_jars()
    with Broker() as broker:
        workers: list[WorkerProcess] = []
        try:
            for number, is_apache in enumerate([first_is_apache, not first_is_apache]):
                folder = tmp_path / str(number)
                workers.append(WorkerProcess(folder, broker.bootstrap, "mixed", is_apache=is_apache))
                workers[-1].wait()
                if number == 0:
                    for name in "abcd":
                        path = tmp_path / f"{name}.txt"
                        append(path, name)
                        config = {"connector.class": FILE_SOURCE, "file": str(path), "topic": f"t-{name}"}
                        workers[0].create(name, config)

            def owners() -> list[str]:
                found = workers[1].get("/connectors?expand=status") or {}
                tasks = [task for each in found.values() for task in each["status"]["tasks"]]
                return sorted(task["worker_id"] for task in tasks if task["state"] == "RUNNING")

            wait_until(lambda: owners() == sorted([each.id for each in workers] * 2), 90, workers[1].said)
            assert workers[1].call("PUT", "/connectors/a/pause").status == 202
            workers[0].wait_for("a", "PAUSED", 1)
            body = {"connector.class": FILE_SOURCE, "file": str(tmp_path / "a.txt"), "topic": "t-new"}
            for method, path, given in (
                ("PUT", "/connectors/b/config", {**body, "tasks.max": "1"}),
                ("POST", "/connectors/c/restart?includeTasks=true", None),
                ("POST", "/connectors/d/tasks/0/restart", None),
            ):
                for each in workers:
                    wait_until(
                        lambda each=each, method=method, path=path, given=given: (  # type: ignore[misc]
                            each.call(method, path, given).status in (200, 202, 204)
                        ),
                        60,
                        each.said,
                    )
            for name in "bcd":
                workers[1].wait_for(name, "RUNNING", 1)
            wait_until(lambda: "a" in values_of(broker.bootstrap, "t-new"), 60)
            workers[0].stop()
            wait_until(lambda: set(owners()) == {workers[1].id} and len(owners()) == 3, 90, workers[1].said)
        finally:
            for each in workers:
                each.stop()
