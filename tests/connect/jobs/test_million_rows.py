"""A table of PostgreSQL goes through a topic into a lake, by a worker that is killed with kill -9."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")
pytest.importorskip("deltalake", reason="needs the extra `lake`")

from barnabas.engine.delta.log import newest_version
from barnabas.testing.waiting import wait_until
from connect.connectors.jdbc_servers import Database, running
from connect.jobs.job_runner import read_topic
from connect.jobs.worker_processes import WorkerProcess
from engine.isolated_cluster import FarAway, executor_python, isolated_cluster, why_not
from spark_sessions import STARTS_FAST

ROWS = int(os.environ.get("BARNABAS_CONNECT_ROWS", "1000000"))
FAR_ROWS = min(ROWS, 100_000)
SECONDS = 1500.0
OTHER_NAMES = {"topic.prefix": "far-", "topics": "far-sales"}  # of the test on a cluster
SPARK = {
    "spark.master": "local[2]",
    "spark.driver.memory": "3g",
    "spark.ui.enabled": "false",
    **STARTS_FAST,  # Spark starts four times: most of the time went into compiling its code again
}

TRANSFORM = """
from barnabas.connect.transforms.contract import Transform
class Same(Transform):
    def change(self, records):
        return records
"""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with running("postgresql", tmp_path) as found:
        found.sql(
            "CREATE TABLE sales (id BIGINT PRIMARY KEY, shop INT NOT NULL, amount NUMERIC(12,2), note TEXT)",
            "INSERT INTO sales SELECT n, n % 97, (n % 10000) / 100.0, 'sale ' || n"
            f" FROM generate_series(1, {ROWS}) n",
        )
        yield found


def source(database: Database) -> dict[str, str]:
    return {
        "name": "sales",
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "table.whitelist": "sales",
        "topic.prefix": "shop-",
        "numeric.mapping": "best_fit",
        "barnabas.key.from.table": "true",
        "barnabas.spark.partitions": "4",
        "barnabas.spark.slice.rows": str(max(ROWS // 8, 1)),
        "poll.interval.ms": "1000",
        "topic.creation.default.partitions": "4",
        "topic.creation.default.replication.factor": "1",
        **SPARK,
        **database.config,
    }


def sink(lake: Path) -> dict[str, str]:
    return {
        "name": "lake",
        "connector.class": "LakeSink",
        "topics": "shop-sales",
        "lake.path": str(lake),
        "insert.mode": "insert",
        "pk.mode": "record_key",
        "lake.coordinates": "true",
        "consumer.override.isolation.level": "read_committed",
        "barnabas.spark.batch.records": str(max(ROWS // 6, 1)),
        **SPARK,
    }


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_one_setting_moves_connectors_to_a_cluster_that_has_only_pyspark(
    database: Database, barnabas_broker: Any, tmp_path: Path
) -> None:
    if reason := why_not():
        pytest.skip(reason)
    lake = tmp_path / "lake"
    database.sql(f"DELETE FROM sales WHERE id > {FAR_ROWS}")  # a machine is a slow cluster
    far = FarAway(tmp_path / "far", [tmp_path / "worker"], executor_python(tmp_path / "python"))
    with isolated_cluster(far) as master:
        plugins = tmp_path / "worker" / "plugins"  # executors do not see it
        plugins.mkdir(parents=True)
        (plugins / "far_transforms.py").write_text(TRANSFORM)
        worker = WorkerProcess(
            tmp_path / "worker", barnabas_broker.bootstrap, group="far", plugin_path=str(plugins)
        )
        moved = {"spark.master": master, "barnabas.spark.batch.interval.ms": "2000"}
        moved |= {"transforms": "same", "transforms.same.type": "far_transforms:Same"}
        try:
            for config in (source(database), sink(lake)):
                worker.create({**config, **moved, **OTHER_NAMES, "name": f"far-{config['name']}"})
            wait_until(lambda: rows_in(lake, "far-sales") >= FAR_ROWS, SECONDS)
            worker.check()
            tasks = worker.tasks()
            assert "pieces on" in tasks["far-sales"]["places"] or "piece on" in tasks["far-sales"]["places"]
        except BaseException:
            print(worker.text())
            raise
        finally:
            worker.stop()
    wanted = database.rows("SELECT count(*), sum(id) FROM sales")[0]
    found = answer(lake, "SELECT count(*), sum(id) FROM $sales", "far-sales")[0]
    assert [int(each) for each in found] == [int(each) for each in wanted]


def answer(lake: Path, query: str, table: str = "shop-sales") -> list[tuple[Any, ...]]:
    import duckdb
    from deltalake import DeltaTable

    if newest_version(str(lake / table / "_delta_log")) < 0:
        return []
    names = [each.removeprefix("file://") for each in DeltaTable(str(lake / table)).file_uris()]
    return duckdb.sql(query.replace("$sales", f"read_parquet({names!r})")).fetchall() if names else []


def rows_in(lake: Path, table: str = "shop-sales") -> int:
    """How many rows the log of the table tells. The files are not read: a test waits for this number."""
    version = newest_version(str(lake / table / "_delta_log"))
    return 0 if version < 0 else rows_at(lake / table, version)


@cache
def rows_at(path: Path, version: int) -> int:
    from deltalake import DeltaTable

    return sum(DeltaTable(str(path), version=version).get_add_actions().column("num_records").to_pylist())


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_million_rows_reach_the_lake_once_through_kills_of_worker_and_spark(
    database: Database, barnabas_broker: Any, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    worker = WorkerProcess(tmp_path / "worker", barnabas_broker.bootstrap, group="million")

    def has(count: int) -> bool:
        failed = [each for each in worker.tasks().values() if each["state"] == "FAILED"]
        assert not failed, failed  # it would never write them
        return rows_in(lake) >= count

    try:
        assert not worker.java()  # nobody asked for Spark yet
        worker.create(source(database))
        worker.create(sink(lake))
        wait_until(lambda: worker.tasks().get("sales", {}).get("records_out", 0) >= ROWS // 8, SECONDS)
        worker.kill()  # in the middle of a slice, and of a batch
        worker.restart()
        wait_until(lambda: has(ROWS // 6), SECONDS)
        worker.ask("PUT", "/connectors/lake/pause")
        wait_until(lambda: worker.states("lake") == {"PAUSED"}, SECONDS)
        worker.ask("PUT", "/connectors/lake/resume")
        wait_until(lambda: worker.states("lake") == {"RUNNING"}, SECONDS)
        worker.kill_java()
        wait_until(lambda: has(ROWS // 2), SECONDS)
        worker.kill()
        worker.restart()
        wait_until(lambda: has(ROWS), SECONDS)
        explained = worker.tasks()["lake"]
        assert explained["road"] == "spark"
    except BaseException:
        print(worker.text())
        raise
    finally:
        worker.stop()
    topic = read_topic(barnabas_broker.bootstrap, "shop-sales")
    ids = [value["payload"]["id"] for _, _, _, value in topic]
    assert len(ids) == ROWS and sum(ids) == ROWS * (ROWS + 1) // 2
    last: dict[int, int] = {}
    for partition, _, _, value in topic:  # numbers grow in each partition: slices follow each other in order
        number = value["payload"]["id"]
        assert number > last.get(partition, 0)
        last[partition] = number
    wanted = database.rows("SELECT count(*), sum(id), sum(amount), count(DISTINCT id) FROM sales")[0]
    found = answer(lake, "SELECT count(*), sum(id), sum(amount), count(DISTINCT id) FROM $sales")[0]
    assert [int(each) for each in (found[0], found[1], found[3])] == [int(wanted[i]) for i in (0, 1, 3)]
    assert abs(float(found[2]) - float(wanted[2])) < 1.0
    ordered = answer(
        lake,
        "SELECT count(*) FROM (SELECT id < lag(id) OVER (PARTITION BY kafka_partition ORDER BY kafka_offset)"
        " AS is_wrong FROM $sales) WHERE is_wrong",
    )
    assert ordered == [(0,)]
    assert json.loads(json.dumps(explained))["plan"]
