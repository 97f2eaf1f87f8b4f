"""Tasks that outlive their time write and commit nothing more: another worker runs them already."""

from __future__ import annotations

import threading
from pathlib import Path

from barnabas.connect.tasks.runner import TaskRunner
from barnabas.testing.broker import Broker
from connect.records_of import values_of
from connect.tasks.parts import States, gates, runner, seen, until
from connect.tasks.test_loops import sink_config, source_config, write

HOUR = {"offset_flush_interval_ms": "3600000", "task_shutdown_graceful_timeout_ms": "100"}


def thread_of(task: str) -> threading.Thread:
    return next(each for each in threading.enumerate() if each.name == f"task-{task}")


def ended(tasks: TaskRunner, thread: threading.Thread, gate: threading.Event) -> None:
    gate.set()
    thread.join(30)
    assert not thread.is_alive()


def test_a_source_that_polled_too_long_writes_nothing_more(
    barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    tasks = runner(barnabas_broker.bootstrap, tmp_path, offset_storage_topic="left-offsets", **HOUR)
    config, states = source_config(barnabas_topic, limit="20"), States()
    gate = gates()["left"] = threading.Event()
    tasks.start("left", 0, config, "STARTED", states)
    until(lambda: states.last == "RUNNING")
    thread = thread_of("left-0")
    tasks.stop("left", 0)
    assert thread.is_alive()
    del gates()["left"]
    tasks.start("left", 0, config, "STARTED", States())
    until(lambda: len(values_of(barnabas_broker.bootstrap, barnabas_topic)) == 20)
    ended(tasks, thread, gate)
    tasks.stop_all()
    assert values_of(barnabas_broker.bootstrap, barnabas_topic) == [str(n) for n in range(20)]


def test_a_sink_that_put_too_long_leaves_its_partitions_and_commits_nothing(
    barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    tasks = runner(barnabas_broker.bootstrap, tmp_path, **HOUR)
    states = States()
    tasks.start("held", 0, sink_config(barnabas_topic), "STARTED", states)
    until(lambda: states.last == "RUNNING" and tasks.progress()[0].partitions == 1)
    gate = seen("held")["gate"] = threading.Event()
    write(barnabas_broker.bootstrap, barnabas_topic, "a", "b")
    until(lambda: "gate" not in seen("held"))
    thread = thread_of("held-0")
    tasks.stop("held", 0)
    tasks.start("held", 0, sink_config(barnabas_topic), "STARTED", States())
    until(lambda: len(seen("held")["put"]) == 2)  # by the new task, while the old one is still at it
    ended(tasks, thread, gate)
    assert seen("held")["flushed"] == []
    tasks.stop_all()
