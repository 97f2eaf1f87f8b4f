"""The lake sink: rows of Delta tables are right after kills at every point, and tables follow schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.connectors.lake.lake_sink import LakeSinkConnector
from barnabas.connect.data import Schema
from barnabas.connect.jobs.batches import frame_schema
from barnabas.connect.jobs.spark_kit import SparkKit
from barnabas.connect.plugins import Batch, RetriableError
from barnabas.engine.delta import commits
from connect.jobs.job_runner import Tasks, headers_in, produce, read_topic, until

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


def tolerant(letters: str) -> dict[str, str]:
    return {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }


def test_only_records_that_do_not_fit_are_dead_letters_and_a_death_leaves_the_others_once(
    tasks: Tasks, barnabas_broker: Any, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task dies after the dead letters were written: before the commit of the table, and behind it."""
    bootstrap = barnabas_broker.bootstrap
    produce(bootstrap, "mixed", [(None, '{"n": 1, "at": {"x": 1}}')])
    wanted = {**config("mixed", tmp_path), **tolerant("mixed-letters")}
    states = tasks.start("mixed", wanted)
    until(lambda: has_ended(tasks, "mixed"))
    assert states.last == "RUNNING", states.trace
    tasks.runner.stop("mixed", 0, 60)
    values: list[Any] = [{"n": n} for n in range(2, 30)]
    values[3], values[4], values[20] = {"n": "one"}, {"n": 2.5}, {"n": 7, "at": [1]}
    values[10] = {"n": 12, "note": "new"}
    produce(bootstrap, "mixed", [(None, json.dumps(each)) for each in values])
    append, left = commits.append, {"calls": 0}

    def dying(rows: Any, path: str, txn: Any, **more: Any) -> None:
        left["calls"] += txn is not None
        if txn is not None and left["calls"] == 1:
            raise Killed
        append(rows, path, txn, **more)
        if txn is not None and left["calls"] == 2:
            raise Killed

    monkeypatch.setattr(commits, "append", dying)
    for _ in range(2):
        states = tasks.start("mixed", wanted)
        until(lambda: has_ended(tasks, "mixed"))
        assert states.last == "FAILED"
        tasks.runner.stop("mixed", 0, 60)
    states = tasks.start("mixed", wanted)
    until(lambda: has_ended(tasks, "mixed"))
    assert states.last == "RUNNING", states.trace
    bad = (3, 4, 20)
    rows = rows_of(spark, tmp_path / "mixed")
    assert sorted(row["n"] for row in rows) == [
        1,
        *(each["n"] for at, each in enumerate(values) if at not in bad),
    ]
    assert [row["note"] for row in rows if row["n"] == 12] == ["new"]
    letters = read_topic(bootstrap, "mixed-letters")
    assert {json.dumps(value) for _, _, _, value in letters} == {json.dumps(values[at]) for at in bad}
    assert len(letters) >= 6 and len(letters) % 3 == 0
    found = headers_in(bootstrap, "mixed-letters")[0]
    told = {name.removeprefix("__connect.errors."): value for name, value in found.items()}
    assert (told["topic"], told["stage"], told["class.name"]) == ("mixed", "TASK_PUT", "LakeSink")
    assert "n is bigint in the table" in told["exception.message"]
    progress = tasks.progress("mixed")
    assert (progress.skipped, progress.dead_letters, progress.last_error.stage) == (3, 3, "TASK_PUT")


def test_records_without_a_key_are_dead_letters_of_an_upsert(
    tasks: Tasks, barnabas_broker: Any, spark: Any, tmp_path: Path
) -> None:
    """A batch of tombstones alone adds no column."""
    bootstrap = barnabas_broker.bootstrap
    keyed = {"insert.mode": "upsert", "pk.mode": "record_key", "pk.fields": "id", "delete.enabled": "true"}
    records: list[tuple[str | None, str | None]] = [
        ('"a"', '{"v": 1}'),
        (None, '{"v": 2}'),
        ('"b"', '{"v": 3}'),
    ]
    produce(bootstrap, "keys", records)
    states = tasks.start("keys", {**config("keys", tmp_path), **keyed, **tolerant("keys-letters")})
    until(lambda: has_ended(tasks, "keys"))
    assert states.last == "RUNNING", states.trace
    assert [value for _, _, _, value in read_topic(bootstrap, "keys-letters")] == [{"v": 2}]
    assert tasks.progress("keys").last_error.offset == 1
    produce(bootstrap, "keys", [('"a"', None), (None, None)])
    until(lambda: tasks.progress("keys").dead_letters == 2 and has_ended(tasks, "keys"))
    assert states.last == "RUNNING", states.trace
    assert rows_of(spark, tmp_path / "keys") == [{"id": "b", "v": 3}]


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_records_that_break_a_constraint_are_dead_letters_and_the_others_are_written(
    tasks: Tasks, barnabas_broker: Any, spark: Any, tmp_path: Path, mode: str
) -> None:
    topic, path = f"checked-{mode}", tmp_path / f"checked-{mode}"
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, n BIGINT, note STRING) USING delta")
    spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (n < 100 AND note IS NULL)")
    numbers = [*range(20), 100, 200, 20]
    rows: list[tuple[str | None, str | None]] = [(str(n % 50), json.dumps({"n": n})) for n in numbers]
    produce(barnabas_broker.bootstrap, topic, [*rows, ("77", json.dumps({"n": None}))])
    given = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": f"{topic}-dead",
             "errors.deadletterqueue.topic.replication.factor": "1",
             "errors.deadletterqueue.context.headers.enable": "true",
             "insert.mode": mode, "pk.mode": "record_key", "pk.fields": "id"}  # fmt: skip
    states = tasks.start(topic, {**config(topic, tmp_path), **given})
    until(lambda: has_ended(tasks, topic))
    assert states.last == "RUNNING", states.trace
    assert sorted(row["n"] for row in rows_of(spark, path)) == [*range(21)]
    dead = [value for _, _, _, value in read_topic(barnabas_broker.bootstrap, f"{topic}-dead")]
    assert sorted(str(each["n"]) for each in dead) == ["100", "200", "None"]
    texts = [each["__connect.errors.exception.message"] for each in headers_in(
        barnabas_broker.bootstrap, f"{topic}-dead")]  # fmt: skip
    assert all("constraint small" in each for each in texts)
    tasks.runner.stop(topic, 0, 60)


def test_a_record_that_breaks_a_constraint_fails_a_task_that_tolerates_none(
    tasks: Tasks, barnabas_broker: Any, spark: Any, tmp_path: Path
) -> None:
    path = tmp_path / "strict"
    spark.sql(f"CREATE TABLE delta.`{path}` (n BIGINT) USING delta")
    spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (n < 100)")
    produce(barnabas_broker.bootstrap, "strict", [(None, json.dumps({"n": n})) for n in (1, 100)])
    states = tasks.start("strict", config("strict", tmp_path))
    until(lambda: states.last == "FAILED")
    assert "constraint small (n < 100) does not hold" in states.trace and "offset 1" in states.trace
    assert rows_of(spark, path) == []


def test_two_topics_share_a_table_and_no_batch_is_left_out_or_twice(
    tasks: Tasks, barnabas_broker: Any, spark: Any, tmp_path: Path
) -> None:
    """The second topic does not fit a column that the first one adds: its records are checked again."""
    bootstrap = barnabas_broker.bootstrap
    produce(bootstrap, "half1", [(None, json.dumps({"n": n})) for n in range(10)])
    produce(
        bootstrap, "half2", [(None, json.dumps({"n": n})) for n in range(10, 20)] + [(None, '{"n": "x"}')]
    )
    wanted = {**config("half1,half2", tmp_path, table_name_format="whole"), **tolerant("half-letters")}
    states = tasks.start("halves", wanted)
    until(lambda: has_ended(tasks, "halves"))
    assert states.last == "RUNNING", states.trace
    assert sorted(row["n"] for row in rows_of(spark, tmp_path / "whole")) == list(range(20))
    assert [value for _, _, _, value in read_topic(bootstrap, "half-letters")] == [{"n": "x"}]
    tasks.runner.stop("halves", 0, 60)
    produce(bootstrap, "half1", [(None, '{"n": 20}')])
    produce(bootstrap, "half2", [(None, '{"n": 21}')])
    tasks.start("halves", wanted)
    until(lambda: has_ended(tasks, "halves"))
    assert sorted(row["n"] for row in rows_of(spark, tmp_path / "whole")) == list(range(22))


def test_a_former_task_that_makes_the_table_while_a_new_one_starts_is_fenced(
    tasks: Tasks, spark: Any, tmp_path: Path
) -> None:
    """Both opened when there was no table. The former one makes it and writes; then the new one; then the
    former one again."""
    kits = [SparkKit(LakeSinkConnector, {"lake.path": str(tmp_path)}, spark) for _ in range(2)]
    former, new = (kit.task for kit in kits)
    for task in (former, new):
        task.open(spark, ["made"])
    write(former, spark, 0, [{"n": 1}, {"n": 2}])
    with pytest.raises(RetriableError, match="another task"):
        write(new, spark, 0, [{"n": 1}])
    new.open(spark, ["made"])
    number, ranges = new.last_batch()
    assert number == 0 and list(ranges.values()) == [(0, 2)]
    write(new, spark, 0, [{"n": 1}, {"n": 2}])
    write(new, spark, 1, [{"n": 3}])
    write(former, spark, 1, [{"n": 3}])  # left out by Delta: the number is of an earlier epoch
    assert sorted(row["n"] for row in rows_of(spark, tmp_path / "made")) == [1, 2, 3]


def write(task: Any, spark: Any, number: int, values: list[dict[str, int]]) -> None:
    data = [("made", 0, place, None, None, each, None) for place, each in enumerate(values)]
    kind = Schema.of_arrow(pa.struct([("n", pa.int64())])).as_optional()
    where = TopicPartition("made", 0)
    batch = Batch("test", 0, number, {where: (number, number + len(values))}, None, kind, "made")
    task.write(spark.createDataFrame(data, frame_schema(None, kind)), batch)


def test_settings_that_do_not_fit_are_named() -> None:
    assert "IcebergSink" in LakeSinkConnector().check({"lake.format": "iceberg"})["lake.format"][0]
    wrong = LakeSinkConnector().check({"insert.mode": "upsert", "delete.enabled": "true"})
    assert set(wrong) == {"pk.mode", "delete.enabled"}
    assert not LakeSinkConnector().check({"insert.mode": "upsert", "pk.mode": "record_key"})
