"""The Iceberg sink with a REST catalog and tables on S3, read back by Apache Iceberg in Java."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")
pytest.importorskip("pyiceberg", reason="needs the extra `iceberg`")

from barnabas.connect.connectors.lake.iceberg_tables import Lake
from connect.jobs import iceberg_java
from connect.jobs.job_runner import Tasks, produce, until
from s3_server import S3Server, running_s3

pytestmark = pytest.mark.long

S3_IN_JAVA = "org.apache.iceberg.aws.s3.S3FileIO"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with running_s3() as found:
        yield found


@pytest.fixture
def tasks(spark: Any, barnabas_broker: Any, tmp_path: Path) -> Iterator[Tasks]:
    found = Tasks(barnabas_broker.bootstrap, spark, tmp_path)
    yield found
    found.stop()


@pytest.fixture(params=["folder", "s3"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Properties of the catalog, as Java and pyiceberg understand them."""
    reason = iceberg_java.missing()
    if reason:
        pytest.skip(reason)
    io: dict[str, str] = {"io-impl": "org.apache.iceberg.hadoop.HadoopFileIO"}
    warehouse = f"file://{tmp_path}/lake"
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3")
        warehouse = f"s3://lake/{tmp_path.name}"
        io = {
            "io-impl": S3_IN_JAVA,
            "s3.endpoint": server.address,
            "s3.access-key-id": "test",
            "s3.secret-access-key": "test",
            "s3.path-style-access": "true",
            "s3.region": "us-east-1",
            "client.region": "us-east-1",
        }
    with iceberg_java.rest_catalog(tmp_path, warehouse, io) as address:
        yield {"type": "rest", "uri": address, **io}


def config(topic: str, catalog: dict[str, str], **more: str) -> dict[str, str]:
    return {
        "connector.class": "IcebergSink",
        "topics": topic,
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.evolve-schema-enabled": "true",
        "iceberg.control.commit.interval-ms": "1",
        **{f"iceberg.catalog.{name}": value for name, value in catalog.items()},
        **more,
    }


def has_ended(tasks: Tasks) -> bool:
    progress = tasks.progress("rest")
    return tasks.states["rest"].last == "FAILED" or (progress.lag == 0 and progress.commits > 0)


class Killed(BaseException):
    """Stands for a process that dies: nothing after it is done."""


def test_upserts_by_a_rest_catalog_are_right_after_deaths_and_apache_reads_them(
    tasks: Tasks,
    barnabas_broker: Any,
    tmp_path: Path,
    catalog: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The task dies before a commit, and between a commit and the offsets; a column is added, another one
    becomes wider, rows go."""
    topic = f"rest-{tmp_path.name}".replace("_", "-")
    keyed = {
        "iceberg.tables": "shop.orders",
        "iceberg.tables.upsert-mode-enabled": "true",
        "iceberg.table.shop.orders.id-columns": "id",
        "iceberg.table.shop.orders.partition-by": "bucket(id, 2)",
        "barnabas.spark.batch.records": "30",
    }
    records: list[tuple[str | None, str | None]] = []
    for n in range(80):
        value: dict[str, Any] = {"id": n % 20, "n": n, "at": {"city": f"c{n}"}, "tags": [n, n + 1]}
        if n >= 60:
            value["note"] = f"ä{n}"
        records.append((json.dumps({"id": n % 20}), json.dumps(value)))
    produce(barnabas_broker.bootstrap, topic, [*records, ('{"id": 5}', None)])
    commit, left = Lake.commit, {"calls": 0}

    def dying(*arguments: Any) -> None:
        left["calls"] += 1
        if left["calls"] == 2:
            raise Killed
        commit(*arguments)
        if left["calls"] == 3:
            raise Killed

    monkeypatch.setattr(Lake, "commit", dying)
    states = tasks.start("rest", config(topic, catalog, **keyed))
    for _ in range(4):
        until(lambda: has_ended(tasks))
        if states.last != "FAILED":
            break
        tasks.runner.stop("rest", 0, 60)
        states = tasks.start("rest", config(topic, catalog, **keyed))
    assert states.last == "RUNNING" and left["calls"] > 3, states.trace
    wanted = [
        {"id": n - 60, "n": n, "at": {"city": f"c{n}"}, "tags": [n, n + 1], "note": f"ä{n}"}
        for n in range(60, 80)
        if n != 65
    ]
    table = Lake("iceberg", catalog, "reader").table("shop.orders")
    assert table is not None
    for rows in (table.scan().to_arrow().to_pylist(), iceberg_java.rows_in_java("shop.orders", catalog)):
        assert sorted(rows, key=lambda row: row["id"]) == wanted
