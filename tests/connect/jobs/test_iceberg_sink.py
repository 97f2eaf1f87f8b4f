"""The Iceberg sink on Spark: tables are right after kills around commits, rows go where their fields say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")
pytest.importorskip("pyiceberg", reason="needs the extra `iceberg`")

from barnabas.connect.connectors.lake.iceberg_tables import Lake
from connect.jobs.job_runner import Tasks, headers_in, produce, read_topic, until

pytestmark = pytest.mark.long


@pytest.fixture
def tasks(spark: Any, barnabas_broker: Any, tmp_path: Path) -> Iterator[Tasks]:
    found = Tasks(barnabas_broker.bootstrap, spark, tmp_path)
    yield found
    found.stop()


def catalog(folder: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/lake"}


def config(topics: str, folder: Path, **more: str) -> dict[str, str]:
    return {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "topics": topics,
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.evolve-schema-enabled": "true",
        "iceberg.control.commit.interval-ms": "1",
        "barnabas.spark.batch.interval.ms": "1",
        **{f"iceberg.catalog.{name}": value for name, value in catalog(folder).items()},
        **more,
    }


def rows_of(folder: Path, table: str) -> list[dict[str, Any]]:
    found = Lake("iceberg", catalog(folder), "reader").table(table)
    rows: list[dict[str, Any]] = [] if found is None else found.scan().to_arrow().to_pylist()
    return rows


def has_ended(tasks: Tasks, name: str) -> bool:
    progress = tasks.progress(name)
    return tasks.states[name].last == "FAILED" or (progress.lag == 0 and progress.commits > 0)


class Killed(BaseException):
    """Stands for a process that dies: nothing after it is done."""


def test_rows_are_appended_once_although_the_task_dies_before_and_after_commits(
    tasks: Tasks, barnabas_broker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [('"k"', json.dumps({"n": n, "to": f"db.{'ab'[n % 2]}"})) for n in range(60)]
    produce(barnabas_broker.bootstrap, "ice", rows)
    wanted = config(
        "ice",
        tmp_path,
        **{
            "iceberg.tables.dynamic-enabled": "true",
            "iceberg.tables.route-field": "to",
            "barnabas.spark.batch.records": "25",
        },
    )
    commit = Lake.commit
    left = {"calls": 0}

    def dying(*arguments: Any) -> None:
        """Dies between the commits of two tables, before a commit, and between table and offsets."""
        left["calls"] += 1
        if left["calls"] == 4:
            raise Killed
        commit(*arguments)
        if left["calls"] in (1, 6):
            raise Killed

    monkeypatch.setattr(Lake, "commit", dying)
    done = False
    for _ in range(8):
        states = tasks.start("ice", wanted)
        until(lambda: has_ended(tasks, "ice"))
        done = states.last != "FAILED"
        tasks.runner.stop("ice", 0, 60)
        if done:
            break
    assert done and left["calls"] > 6, states.trace
    assert sorted(row["n"] for row in rows_of(tmp_path, "db.a")) == list(range(0, 60, 2))
    assert sorted(row["n"] for row in rows_of(tmp_path, "db.b")) == list(range(1, 60, 2))


def test_upserts_keep_the_last_row_of_a_key(tasks: Tasks, barnabas_broker: Any, tmp_path: Path) -> None:
    keyed = {
        "iceberg.tables": "db.people",
        "iceberg.tables.upsert-mode-enabled": "true",
        "iceberg.table.db.people.id-columns": "id",
        "iceberg.table.db.people.partition-by": "bucket(id, 3)",
    }
    records: list[tuple[str | None, str | None]] = [
        (json.dumps({"id": n % 10}), json.dumps({"id": n % 10, "n": n, "at": {"x": n}})) for n in range(40)
    ]
    produce(barnabas_broker.bootstrap, "people2", [*records, ('{"id": 3}', None)])
    states = tasks.start("people2", config("people2", tmp_path, **keyed))
    until(lambda: tasks.progress("people2").commits == 1 or states.last == "FAILED")
    assert states.last == "RUNNING", states.trace
    found = {row["id"]: row["n"] for row in rows_of(tmp_path, "db.people")}
    assert found == {n: 30 + n for n in range(10) if n != 3}
    later: list[tuple[str | None, str | None]] = [
        ('{"id": 3}', json.dumps({"id": 3, "n": 100, "note": "new", "at": {"x": 1, "y": 2}})),
        ('{"id": 4}', None),
    ]
    produce(barnabas_broker.bootstrap, "people2", later)
    until(lambda: tasks.progress("people2").commits == 2 or states.last == "FAILED")
    assert states.last == "RUNNING", states.trace
    rows = rows_of(tmp_path, "db.people")
    by_id = {row["id"]: row for row in rows}
    assert sorted(by_id) == [0, 1, 2, 3, 5, 6, 7, 8, 9] and len(rows) == 9
    assert by_id[3] == {"id": 3, "n": 100, "note": "new", "at": {"x": 1, "y": 2}}
    assert by_id[5]["at"] == {"x": 35, "y": None}


def test_changes_with_operations_and_routes_by_expression(
    tasks: Tasks, barnabas_broker: Any, tmp_path: Path
) -> None:
    values = [
        {"id": 1, "op": "I", "kind": "cat"},
        {"id": 2, "op": "I", "kind": "dog"},
        {"id": 1, "op": "D", "kind": "cat"},
        {"id": 3, "op": "U", "kind": "cat"},
        {"id": 4, "op": "U", "kind": "bird"},
    ]
    produce(barnabas_broker.bootstrap, "pets", [(None, json.dumps(each)) for each in values])
    wanted = config(
        "pets",
        tmp_path,
        **{
            "iceberg.tables": "db.cats,db.dogs",
            "iceberg.tables.route-field": "kind",
            "iceberg.table.db.cats.route-regex": "c.t",
            "iceberg.table.db.dogs.route-regex": "dog",
            "iceberg.tables.cdc-field": "op",
            "iceberg.tables.default-id-columns": "id",
        },
    )
    states = tasks.start("pets", wanted)
    until(lambda: has_ended(tasks, "pets"))
    assert states.last == "RUNNING", states.trace
    assert rows_of(tmp_path, "db.cats") == [{"id": 3, "kind": "cat"}]
    assert rows_of(tmp_path, "db.dogs") == [{"id": 2, "kind": "dog"}]


def test_a_table_that_is_missing_and_a_type_that_does_not_fit_fail_with_what_to_do(
    tasks: Tasks, barnabas_broker: Any, tmp_path: Path
) -> None:
    produce(barnabas_broker.bootstrap, "typed2", [(None, '{"n": 1}')])
    wanted = config("typed2", tmp_path, **{"iceberg.tables": "db.typed"})
    states = tasks.start("typed2", {**wanted, "iceberg.tables.auto-create-enabled": "false"})
    until(lambda: states.last == "FAILED")
    assert "there is no table db.typed" in states.trace
    tasks.runner.stop("typed2", 0, 60)
    states = tasks.start("typed2", wanted)
    until(lambda: tasks.progress("typed2").commits == 1 or states.last == "FAILED")
    produce(barnabas_broker.bootstrap, "typed2", [(None, '{"n": "one"}')])
    until(lambda: states.last == "FAILED")
    assert "n" in states.trace and "int" in states.trace


def tolerant(letters: str) -> dict[str, str]:
    return {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }


def test_only_records_that_do_not_fit_are_dead_letters_and_a_death_leaves_the_others_once(
    tasks: Tasks, barnabas_broker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task dies after the dead letters were written: before the commit of the table, and behind it."""
    bootstrap = barnabas_broker.bootstrap
    wanted = config("mixed2", tmp_path, **{"iceberg.tables": "db.mixed"}, **tolerant("ice-letters"))
    produce(bootstrap, "mixed2", [(None, '{"n": 1}')])
    states = tasks.start("mixed2", wanted)
    until(lambda: has_ended(tasks, "mixed2"))
    assert states.last == "RUNNING", states.trace
    tasks.runner.stop("mixed2", 0, 60)
    texts = ['{"n": 2}', '{"n": "one"}', '{"n": 3, "note": "new"}', '{"n": [1]}', '{"n": 4}', '{"n": 4.5}']
    produce(bootstrap, "mixed2", [(None, each) for each in texts])
    commit, left = Lake.commit, {"calls": 0}

    def dying(*arguments: Any) -> None:
        left["calls"] += 1
        if left["calls"] == 1:
            raise Killed
        commit(*arguments)
        if left["calls"] == 2:
            raise Killed

    monkeypatch.setattr(Lake, "commit", dying)
    for _ in range(2):
        states = tasks.start("mixed2", wanted)
        until(lambda: has_ended(tasks, "mixed2"))
        assert states.last == "FAILED"
        tasks.runner.stop("mixed2", 0, 60)
    states = tasks.start("mixed2", wanted)
    until(lambda: has_ended(tasks, "mixed2"))
    assert states.last == "RUNNING", states.trace
    found = sorted((row["n"], row["note"]) for row in rows_of(tmp_path, "db.mixed"))
    assert found == [(1, None), (2, None), (3, "new"), (4, None)]
    letters = [json.dumps(value) for _, _, _, value in read_topic(bootstrap, "ice-letters")]
    assert set(letters) == {texts[1], texts[3], texts[5]} and len(letters) >= 6
    told = headers_in(bootstrap, "ice-letters")[0]
    assert told["__connect.errors.class.name"] == "IcebergSink"
    assert told["__connect.errors.exception.message"].startswith("n is int64 in the table")
    tasks.runner.stop("mixed2", 0, 60)
    produce(bootstrap, "mixed2", [(None, '{"n": 5}'), (None, '{"n": "six"}')])
    strict = {**wanted, "errors.tolerance": "none"}
    states = tasks.start("mixed2", strict)
    until(lambda: states.last == "FAILED")
    assert "mixed2-0 offset 8" in states.trace and "n is int64 in the table" in states.trace
    assert len(rows_of(tmp_path, "db.mixed")) == 4


def test_records_that_name_no_table_or_lack_the_key_are_dead_letters(
    tasks: Tasks, barnabas_broker: Any, tmp_path: Path
) -> None:
    """Also a tombstone that names no row. A batch of tombstones alone deletes."""
    bootstrap = barnabas_broker.bootstrap
    values: list[tuple[str | None, str | None]] = [
        (None, '{"id": 1, "to": "db.x"}'),
        (None, '{"id": 2, "to": "nowhere"}'),
        (None, '{"id": null, "to": "db.x"}'),
        (None, '{"to": "db.x"}'),
        (None, '{"id": 3, "to": "DB.x"}'),
    ]
    produce(bootstrap, "named", values)
    wanted = config(
        "named",
        tmp_path,
        **{
            "iceberg.tables.dynamic-enabled": "true",
            "iceberg.tables.route-field": "to",
            "iceberg.tables.upsert-mode-enabled": "true",
            "iceberg.tables.default-id-columns": "id",
        },
        **tolerant("named-letters"),
    )
    states = tasks.start("named", wanted)
    until(lambda: has_ended(tasks, "named"))
    assert states.last == "RUNNING", states.trace
    assert sorted(row["id"] for row in rows_of(tmp_path, "db.x")) == [1, 3]
    assert len(read_topic(bootstrap, "named-letters")) == 3
    tasks.runner.stop("named", 0, 60)
    keyed = {
        "iceberg.tables": "db.gone",
        "iceberg.tables.upsert-mode-enabled": "true",
        "iceberg.table.db.gone.id-columns": "id",
        **tolerant("gone-letters"),
    }
    produce(bootstrap, "gone", [(json.dumps({"id": n}), json.dumps({"id": n})) for n in range(3)])
    states = tasks.start("gone", config("gone", tmp_path, **keyed))
    until(lambda: tasks.progress("gone").commits == 1 or states.last == "FAILED")
    produce(bootstrap, "gone", [('{"id": 1}', None), ('"2"', None), (None, None)])
    until(lambda: has_ended(tasks, "gone") and tasks.progress("gone").dead_letters == 2)
    assert states.last == "RUNNING", states.trace
    assert sorted(row["id"] for row in rows_of(tmp_path, "db.gone")) == [0, 2]


def test_two_topics_share_a_table_and_no_batch_is_left_out_or_twice(
    tasks: Tasks, barnabas_broker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task dies between the topics of a batch."""
    bootstrap = barnabas_broker.bootstrap
    produce(bootstrap, "part1", [(None, json.dumps({"n": n})) for n in range(10)])
    produce(bootstrap, "part2", [(None, json.dumps({"n": n})) for n in range(10, 20)])
    wanted = config("part1,part2", tmp_path, **{"iceberg.tables": "db.parts"})
    commit, left = Lake.commit, {"calls": 0}

    def dying(*arguments: Any) -> None:
        commit(*arguments)
        left["calls"] += 1
        if left["calls"] == 1:
            raise Killed

    monkeypatch.setattr(Lake, "commit", dying)
    states = tasks.start("parts", wanted)
    until(lambda: states.last == "FAILED")
    tasks.runner.stop("parts", 0, 60)
    states = tasks.start("parts", wanted)
    until(lambda: has_ended(tasks, "parts"))
    assert states.last == "RUNNING", states.trace
    assert sorted(row["n"] for row in rows_of(tmp_path, "db.parts")) == list(range(20))


def test_upserts_are_right_after_deaths_and_beside_another_writer(
    tasks: Tasks, barnabas_broker: Any, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer commits between the rewrite of files and their commit; the task dies before a commit,
    and between table and offsets."""
    bootstrap = barnabas_broker.bootstrap
    keyed = {
        "iceberg.tables": "db.up",
        "iceberg.tables.upsert-mode-enabled": "true",
        "iceberg.table.db.up.id-columns": "id",
        "barnabas.spark.batch.records": "20",
    }
    texts = [json.dumps({"id": n % 30, "n": n}) for n in range(120)]
    produce(bootstrap, "up", [(None, each) for each in texts])
    wanted = config("up", tmp_path, **keyed)
    commit, left = Lake.commit, {"calls": 0, "foreign": 0, "replaced": 0}

    def disturbed(self: Lake, table: Any, *more: Any) -> None:
        left["calls"] += 1
        left["replaced"] += len(more[4])
        if left["calls"] == 3:  # the files that were rewritten are of an older snapshot then
            other = self.table("db.up")
            assert other is not None
            other.append(pa.table({"id": [1000], "n": [0]}))
            left["foreign"] += 1
        if left["calls"] == 5:
            raise Killed
        commit(self, table, *more)
        if left["calls"] == 7:
            raise Killed

    monkeypatch.setattr(Lake, "commit", disturbed)
    for _ in range(6):
        states = tasks.start("up", wanted)
        until(lambda: has_ended(tasks, "up"))
        if states.last != "FAILED":
            break
        tasks.runner.stop("up", 0, 60)
    assert states.last == "RUNNING", states.trace
    assert left["calls"] > 7 and left["foreign"] == 1 and left["replaced"] > 2
    rows = sorted((row["id"], row["n"]) for row in rows_of(tmp_path, "db.up"))
    assert rows == [*((n, 90 + n) for n in range(30)), (1000, 0)]
