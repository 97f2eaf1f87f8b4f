"""Sources that are Spark jobs: slices are written by executors, offsets after them, each record once."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")

from audit.counted import counts
from barnabas.audit import PRODUCER
from connect.jobs.job_runner import Tasks, read_topic, until

MODULE = "spark_source_parts"
SOURCE = textwrap.dedent(
    """
    from pyspark.sql import functions as sql
    from barnabas.connect.plugins import *

    FAILS = {"slices": 0}

    class NumbersTask(SparkSource):
        poll_interval_s = 0.05

        def plan(self, spark, offsets):
            [found] = offsets.read([{"numbers": "all"}])
            first = found["next"] if found else 0
            limit, step = (int(self.context.config[name]) for name in ("limit", "step"))
            if first >= limit:
                return None
            end = min(first + step, limit)
            failing = FAILS["slices"] > 0
            FAILS["slices"] -= failing
            error = RetriableError if self.context.config.get("busy") else TypeError

            def broken(batches):
                for each in batches:
                    if each.column(0).to_pylist()[-1:] == [end - 1]:
                        raise error("the last row is broken")
                    yield each

            rows = spark.range(first, end, 1, 3)
            if failing:
                rows = rows.mapInArrow(broken, rows.schema)
            value = sql.col("id")
            frame = rows.select(
                (sql.col("id") % 7).alias("key"),
                sql.struct(value.alias("n"), sql.lit(None).cast("string").alias("note")).alias("value"),
            )
            return Slice(frame, [({"numbers": "all"}, {"next": end})], topic=self.context.config["topic"])

    class Numbers(Connector):
        KIND = "source"
        task = NumbersTask
    """
)


@pytest.fixture
def tasks(spark: Any, barnabas_broker: Any, tmp_path: Path, request: Any) -> Iterator[Tasks]:
    (tmp_path / f"{MODULE}.py").write_text(SOURCE)
    found = Tasks(
        barnabas_broker.bootstrap,
        spark,
        tmp_path,
        offset_storage_topic=f"offsets-{request.node.name.partition('[')[0]}",
        **getattr(request, "param", {}),
    )
    yield found
    found.stop()


def config(topic: str) -> dict[str, str]:
    return {
        "connector.class": f"{MODULE}:Numbers",
        "topic": topic,
        "limit": "900",
        "step": "300",
        "topic.creation.default.partitions": "3",
        "topic.creation.default.replication.factor": "1",
    }


@pytest.mark.parametrize("tasks", [{}, {"exactly_once_source_support": "enabled"}], indirect=True)
def test_slices_are_written_once_and_a_restart_goes_on_behind_them(
    tasks: Tasks, barnabas_broker: Any, request: Any
) -> None:
    topic = f"numbers-{'exact' if 'exactly.once.source.support' in tasks.worker else 'plain'}"
    states = tasks.start(topic, config(topic))
    until(lambda: tasks.progress(topic).commits == 3 or states.last == "FAILED")
    assert states.last == "RUNNING", states.trace
    progress = tasks.progress(topic)
    assert (progress.records_in, progress.records_out, progress.road) == (900, 900, "spark")
    assert "MapInArrow" in progress.plan and "records" in progress.places
    client = tasks.client(topic)
    assert (client.kind, client.client_id) == ("producer", f"connector-producer-{topic}-0")
    executors = progress.executors["producer"].traffic
    assert executors.bytes_sent > 900 * len('{"n":1}') and executors.responses >= 3
    assert client.client.traffic.bytes_sent > executors.bytes_sent
    tasks.runner.stop(topic, 0, 60)
    tasks.start(topic, {**config(topic), "limit": "1000"})
    until(lambda: tasks.progress(topic).commits == 1)
    found = read_topic(barnabas_broker.bootstrap, topic)
    assert sorted(value["n"] for _, _, _, value in found) == list(range(1000))
    by_key: dict[int, list[tuple[int, int]]] = {}
    for partition, _, key, value in found:
        by_key.setdefault(key, []).append((partition, value["n"]))
    for seen in by_key.values():
        assert len({partition for partition, _ in seen}) == 1
    if "exact" in topic:  # rows of a key are in the order of the frame
        assert all([n for _, n in seen] == sorted(n for _, n in seen) for seen in by_key.values())


@pytest.mark.parametrize(
    "tasks",
    [{"exactly_once_source_support": "enabled", "barnabas_audit_enable": "true"}],
    indirect=True,
)
def test_a_slice_that_fails_on_executors_leaves_nothing_and_comes_again(
    tasks: Tasks, barnabas_broker: Any
) -> None:
    import importlib

    parts = importlib.import_module(MODULE)
    parts.FAILS["slices"] = 2
    states = tasks.start("failing", {**config("failing"), "busy": "true"})
    until(lambda: tasks.progress("failing").commits == 3 or states.last == "FAILED")
    assert states.last == "RUNNING", states.trace
    assert tasks.progress("failing").retries == 2
    found = read_topic(barnabas_broker.bootstrap, "failing")
    assert Counter(value["n"] for _, _, _, value in found) == Counter(range(900))
    tasks.runner.stop("failing", 0, 60)  # a counter sends its last counts when it closes
    until(lambda: sum(counts(barnabas_broker.bootstrap, "failing", PRODUCER).values()) == 900)


@pytest.mark.parametrize("tasks", [{}, {"exactly_once_source_support": "enabled"}], indirect=True)
def test_a_type_error_on_an_executor_fails_the_task_with_its_trace_and_slice(
    tasks: Tasks, barnabas_broker: Any
) -> None:
    import importlib

    name = f"type-{len(tasks.worker)}"
    importlib.import_module(MODULE).FAILS["slices"] = 1
    states = tasks.start(name, config(name))
    until(lambda: states.last == "FAILED")
    for each in (f"the slice for the topic {name}", '{"next": 300}', "TypeError: the last row", "in broken"):
        assert each in states.trace
    progress = tasks.progress(name)
    assert (progress.retries, progress.commits) == (0, 0)
    assert "TypeError" in progress.last_error.message
    tasks.runner.stop(name, 0, 60)  # a restart writes the slice
    tasks.start(name, {**config(name), "limit": "300"})
    until(lambda: tasks.progress(name).commits == 1)
    found = Counter(value["n"] for _, _, _, value in read_topic(barnabas_broker.bootstrap, name))
    assert set(found) == set(range(300))
    assert "exactly.once.source.support" not in tasks.worker or set(found.values()) == {1}


def test_a_record_that_the_converter_refuses_fails_the_task_with_its_text(tasks: Tasks) -> None:
    strings = {"value.converter": "org.apache.kafka.connect.converters.LongConverter"}
    states = tasks.start("refused", {**config("refused"), **strings})
    until(lambda: states.last == "FAILED")
    assert "VALUE_CONVERTER" in states.trace and "errors.tolerance" in states.trace
    assert tasks.progress("refused").last_error.stage == "VALUE_CONVERTER"
