"""The lake sink: rows of Delta tables are right after kills at every point, and tables follow schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")

from barnabas.connect.connectors.lake.lake_sink import LakeSinkConnector
from barnabas.engine.delta import commits
from connect.jobs.job_runner import Tasks, produce, until

CLASS = "barnabas.connect.connectors.lake.lake_sink.LakeSinkConnector"


@pytest.fixture
def tasks(spark: Any, barnabas_broker: Any, tmp_path: Path) -> Iterator[Tasks]:
    found = Tasks(barnabas_broker.bootstrap, spark, tmp_path)
    yield found
    found.stop()


def config(topics: str, lake: Path, **more: str) -> dict[str, str]:
    found = {"connector.class": CLASS, "topics": topics, "lake.path": str(lake)}
    more["barnabas_spark_batch_interval_ms"] = "1"
    return {**found, **{name.replace("_", "."): text for name, text in more.items()}}


def rows_of(spark: Any, path: Path) -> list[dict[str, Any]]:
    if not (path / "_delta_log").is_dir():
        return []
    return [row.asDict(recursive=True) for row in spark.read.format("delta").load(str(path)).collect()]


def has_ended(tasks: Tasks, name: str) -> bool:
    """Whether the task failed, or has written everything."""
    progress = tasks.progress(name)
    return tasks.states[name].last == "FAILED" or (progress.lag == 0 and progress.commits > 0)


class Killed(BaseException):
    """Stands for a process that dies: nothing after it is done."""


def test_rows_are_appended_once_although_the_task_dies_before_and_after_commits(
    tasks: Tasks, barnabas_broker: Any, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(barnabas_broker.bootstrap, "events", [('"k"', json.dumps({"n": n})) for n in range(50)])
    produce(barnabas_broker.bootstrap, "others", [('"k"', json.dumps({"m": n})) for n in range(20)])
    wanted = config("events,others", tmp_path, barnabas_spark_batch_records="30")
    append = commits.append
    left = {"calls": 0}

    def dying(*arguments: Any, **more: Any) -> None:
        """Dies after the first, then before the third commit of rows: between tables, and between table and
        offsets."""
        left["calls"] += 1
        if left["calls"] == 4:
            raise Killed
        append(*arguments, **more)
        if left["calls"] in (1, 6):
            raise Killed

    monkeypatch.setattr(commits, "append", dying)
    done = False
    for _ in range(8):
        states = tasks.start("lake", wanted)
        until(lambda: has_ended(tasks, "lake"))
        done = states.last != "FAILED"
        tasks.runner.stop("lake", 0, 60)
        if done:
            break
    assert done and left["calls"] > 6
    assert sorted(row["n"] for row in rows_of(spark, tmp_path / "events")) == list(range(50))
    assert sorted(row["m"] for row in rows_of(spark, tmp_path / "others")) == list(range(20))


def test_upserts_keep_the_last_value_of_a_key_and_tombstones_delete(
    tasks: Tasks, barnabas_broker: Any, spark: Any, tmp_path: Path
) -> None:
    keyed = {
        "insert.mode": "upsert",
        "pk.mode": "record_key",
        "pk.fields": "id",
        "delete.enabled": "true",
    }
    records: list[tuple[str | None, str | None]] = [
        (str(n % 10), json.dumps({"n": n, "at": {"x": n}})) for n in range(40)
    ]
    produce(barnabas_broker.bootstrap, "people", [*records, ("3", None)])
    states = tasks.start("people", {**config("people", tmp_path), **keyed})
    until(lambda: tasks.progress("people").commits == 1 or states.last == "FAILED")
    assert states.last == "RUNNING", states.trace
    found = {row["id"]: row for row in rows_of(spark, tmp_path / "people")}
    assert {key: row["n"] for key, row in found.items()} == {n: 30 + n for n in range(10) if n != 3}
    later: list[tuple[str | None, str | None]] = [
        ("3", json.dumps({"n": 100, "note": "new", "at": {"x": 1, "y": 2}})),
        ("4", None),
    ]
    produce(barnabas_broker.bootstrap, "people", later)
    until(lambda: tasks.progress("people").commits == 2 or states.last == "FAILED")
    assert states.last == "RUNNING", states.trace
    found = {row["id"]: row for row in rows_of(spark, tmp_path / "people")}
    assert sorted(found) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert found[3] == {"id": 3, "n": 100, "note": "new", "at": {"x": 1, "y": 2}}
    assert found[5]["at"] == {"x": 35, "y": None} and found[5]["note"] is None


def test_a_record_without_a_key_fails_an_upsert_and_names_its_place(
    tasks: Tasks, barnabas_broker: Any, spark: Any, tmp_path: Path
) -> None:
    keyed = {"insert.mode": "upsert", "pk.mode": "record_key", "pk.fields": "id"}
    produce(barnabas_broker.bootstrap, "keyless", [('"a"', '{"v": 1}'), (None, '{"v": 2}')])
    states = tasks.start("keyless", {**config("keyless", tmp_path), **keyed})
    until(lambda: has_ended(tasks, "keyless"))
    assert states.last == "FAILED"
    assert "pk.mode=record_key: the record has no key" in str(states.trace)
    assert rows_of(spark, tmp_path / "keyless") == []


def test_a_column_of_another_type_fails_with_what_to_do(
    tasks: Tasks, barnabas_broker: Any, tmp_path: Path
) -> None:
    produce(barnabas_broker.bootstrap, "typed", [(None, '{"n": 1}')])
    states = tasks.start("typed", config("typed", tmp_path))
    until(lambda: tasks.progress("typed").commits == 1)
    produce(barnabas_broker.bootstrap, "typed", [(None, '{"n": "one"}')])
    until(lambda: states.last == "FAILED")
    assert "n is bigint in the table, and records bring string" in states.trace
    assert tasks.progress("typed").last_error.offset == 1


def test_settings_that_do_not_fit_are_named() -> None:
    assert "IcebergSink" in LakeSinkConnector().check({"lake.format": "iceberg"})["lake.format"][0]
    wrong = LakeSinkConnector().check({"insert.mode": "upsert", "delete.enabled": "true"})
    assert set(wrong) == {"pk.mode", "delete.enabled"}
    assert not LakeSinkConnector().check({"insert.mode": "upsert", "pk.mode": "record_key"})
