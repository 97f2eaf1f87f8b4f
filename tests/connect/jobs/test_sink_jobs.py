"""Sinks that are Spark jobs: ranges of topics come as DataFrames, batch after batch."""

from __future__ import annotations

import importlib
import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")

from audit.counted import counts
from barnabas.audit import sink
from connect.jobs.job_runner import Tasks, produce, until

MODULE = "spark_sink_parts"
SOURCE = textwrap.dedent(
    """
    import os
    from barnabas.connect.plugins import RetriableError, sink

    SEEN = {}
    FAILS = {}

    @sink
    def collecting(frame, batch):
        seen = SEEN.setdefault(batch.connector, {"rows": [], "batches": [], "fails": 0})
        if seen["fails"]:
            seen["fails"] -= 1
            raise RetriableError("busy")
        rows = frame.orderBy("partition", "offset").collect()
        seen["rows"] += [(row.partition, row.offset, row.value) for row in rows]
        seen["batches"].append((batch.number, batch.topic, frame.schema["value"].dataType.simpleString()))

    @sink
    def on_executors(frame, batch):
        def failing(batches):
            for each in batches:
                if kind == "type":
                    None + 1
                if kind == "busy":
                    raise RetriableError("the store is busy")
                if kind == "killed":
                    os._exit(9)
                yield each

        kind = FAILS.get(batch.connector)
        FAILS[batch.connector] = kind if kind == "type" else ""
        frame.mapInArrow(failing, frame.schema).collect()
    """
)


@pytest.fixture
def tasks(spark: Any, barnabas_broker: Any, tmp_path: Path) -> Iterator[Tasks]:
    (tmp_path / f"{MODULE}.py").write_text(SOURCE)
    found = Tasks(barnabas_broker.bootstrap, spark, tmp_path)
    yield found
    found.stop()


def module() -> Any:
    return importlib.import_module(MODULE)


def seen(connector: str) -> dict[str, Any]:
    empty: dict[str, Any] = {"rows": [], "batches": [], "fails": 0}
    found: dict[str, Any] = module().SEEN.setdefault(connector, empty)
    return found


def config(topics: str, **more: str) -> dict[str, str]:
    found = {
        "connector.class": f"{MODULE}:collecting",
        "topics": topics,
        "barnabas.spark.batch.interval.ms": "1",
    }
    return {**found, **{name.replace("_", "."): text for name, text in more.items()}}


def test_records_come_once_in_bounded_batches_although_a_write_fails(
    tasks: Tasks, barnabas_broker: Any
) -> None:
    produce(barnabas_broker.bootstrap, "bounded", [(None, json.dumps({"n": n})) for n in range(100)])
    states = tasks.start("bounded", config("bounded", barnabas_spark_batch_records="40"))
    until(lambda: tasks.runner.progress()[0].commits == 3 or states.last == "FAILED")
    assert states.last == "RUNNING", states.trace
    found = seen("bounded")
    assert sorted(row[2]["n"] for row in found["rows"]) == list(range(100))
    assert [number for number, _, _ in found["batches"]] == [0, 1, 2]
    progress = tasks.progress("bounded")
    assert (progress.records_in, progress.records_out) == (100, 100)
    executors = progress.executors["consumer"].traffic
    assert executors.bytes_received > 100 * len('{"n":1}') and executors.connections >= 1
    assert tasks.client("bounded").client.traffic.bytes_received > executors.bytes_received
    tasks.runner.stop("bounded", 0, 60)
    found["fails"] = 2
    produce(barnabas_broker.bootstrap, "bounded", [(None, json.dumps({"n": n})) for n in range(100, 110)])
    tasks.start("bounded", config("bounded"))
    until(lambda: tasks.progress("bounded").commits == 1)
    assert sorted(row[2]["n"] for row in found["rows"]) == list(range(110))
    assert found["batches"][-1][0] == 3 and tasks.progress("bounded").retries >= 2


def test_schemas_that_fit_are_united_and_those_that_do_not_begin_another_batch(
    tasks: Tasks, barnabas_broker: Any
) -> None:
    values: list[dict[str, Any]] = [{"n": 1}, {"n": 2, "note": "two"}, {"n": "three"}, {"n": "four"}]
    produce(barnabas_broker.bootstrap, "shapes", [(None, with_schema(each)) for each in values])
    schemas = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}
    states = tasks.start("shapes", {**config("shapes"), **schemas})
    until(lambda: len(seen("shapes")["rows"]) == 4 or states.last == "FAILED")
    assert states.last == "RUNNING", states.trace
    assert seen("shapes")["batches"] == [
        (0, "shapes", "struct<n:int,note:string>"),
        (1, "shapes", "struct<n:string>"),
    ]
    assert [row[2].asDict() for row in seen("shapes")["rows"]] == [
        {"n": 1, "note": None},
        {"n": 2, "note": "two"},
        {"n": "three"},
        {"n": "four"},
    ]


def test_a_poison_record_goes_to_the_dead_letter_queue_with_its_coordinates(
    tasks: Tasks, barnabas_broker: Any
) -> None:
    texts: list[tuple[str | None, str | None]] = [(None, '{"n": 1}'), (None, "{poison"), (None, '{"n": 2}')]
    produce(barnabas_broker.bootstrap, "poison", texts)
    letters = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "letters",
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    tasks.start("poison", {**config("poison"), **letters})
    until(lambda: len(seen("poison")["rows"]) == 2)
    progress = tasks.progress("poison")
    assert (progress.skipped, progress.dead_letters) == (1, 1)
    assert (progress.last_error.topic, progress.last_error.offset) == ("poison", 1)
    states = tasks.start("strict", config("poison"))
    until(lambda: states.last == "FAILED")
    assert "poison-0 offset 1" in states.trace


def test_a_type_error_on_an_executor_fails_the_task_with_its_trace_and_coordinates(
    tasks: Tasks, barnabas_broker: Any
) -> None:
    produce(barnabas_broker.bootstrap, "broken", [(None, json.dumps({"n": n})) for n in range(5)])
    module().FAILS["broken"] = "type"
    states = tasks.start("broken", config("broken", connector_class=f"{MODULE}:on_executors"))
    until(lambda: states.last == "FAILED")
    for each in ("broken-0 offsets 0 to 4", "TypeError: unsupported operand", "None + 1"):
        assert each in states.trace
    progress = tasks.progress("broken")
    assert (progress.retries, progress.commits, progress.last_error.topic) == (0, 0, "broken")
    tasks.runner.stop("broken", 0, 60)  # a restart goes on where it stopped
    module().FAILS["broken"] = ""
    states = tasks.start("broken", config("broken", connector_class=f"{MODULE}:on_executors"))
    until(lambda: tasks.progress("broken").records_out == 5)
    assert states.last == "RUNNING"


@pytest.mark.parametrize(("kind", "text"), [("busy", "the store is busy"), ("killed", "Spark failed")])
def test_a_store_that_is_busy_and_a_python_process_that_is_lost_are_tried_again(
    tasks: Tasks, barnabas_broker: Any, kind: str, text: str
) -> None:
    produce(barnabas_broker.bootstrap, kind, [(None, json.dumps({"n": n})) for n in range(5)])
    module().FAILS[kind] = kind
    states = tasks.start(kind, config(kind, connector_class=f"{MODULE}:on_executors"))
    until(lambda: tasks.progress(kind).commits == 1 or states.last == "FAILED")
    assert states.last == "RUNNING", states.trace
    progress = tasks.progress(kind)
    assert (progress.retries, progress.records_out) == (1, 5)
    assert text in progress.last_error.message and progress.last_error.topic == kind


def with_schema(value: dict[str, Any]) -> str:
    kinds = {int: "int32", str: "string"}
    fields = [{"field": name, "type": kinds[type(each)]} for name, each in value.items()]
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": value})


def test_a_sink_counts_what_it_wrote_for_the_audit(spark: Any, barnabas_broker: Any, tmp_path: Path) -> None:
    """A write fails once; its records count once."""
    (tmp_path / f"{MODULE}.py").write_text(SOURCE)
    bootstrap = barnabas_broker.bootstrap
    found = Tasks(bootstrap, spark, tmp_path, barnabas_audit_enable="true")
    try:
        produce(bootstrap, "audited", [(None, json.dumps({"n": n})) for n in range(30)])
        seen("audited-sink")["fails"] = 1
        found.start("audited-sink", config("audited"))
        until(lambda: sum(counts(bootstrap, "audited", sink("audited-sink")).values()) == 30)
        assert found.progress("audited-sink").retries >= 1
    finally:
        found.stop()
