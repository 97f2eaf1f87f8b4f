"""The JDBC source as a Spark job: tables are read by ranges of keys, and a restart continues inside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")

from barnabas.connect.connectors.jdbc.key_ranges import next_slice
from barnabas.connect.connectors.jdbc.source import JdbcSourceConnector
from connect.connectors.jdbc_servers import Database, running
from connect.jobs.job_runner import Tasks, read_topic, until

CLASS = "io.confluent.connect.jdbc.JdbcSourceConnector"


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    with running(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def tasks(spark: Any, barnabas_broker: Any, tmp_path: Path, request: Any) -> Iterator[Tasks]:
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    found = Tasks(
        barnabas_broker.bootstrap,
        spark,
        tmp_path,
        offset_storage_topic=f"offsets-{name}",
        exactly_once_source_support="enabled",
    )
    yield found
    found.stop()


def filled(database: Database, rows: int) -> None:
    """Ids with gaps, so that ranges of equal width would be unequal."""
    database.sql("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount NUMERIC(10,2), note VARCHAR(40))")
    values = ", ".join(f"({n * n}, {n}.25, 'note {n}')" for n in range(1, rows + 1))
    database.sql(f"INSERT INTO orders VALUES {values}")


def config(database: Database, prefix: str, **more: str) -> dict[str, str]:
    found = {
        "connector.class": CLASS,
        "tables": "orders",
        "topic.prefix": prefix,
        "numeric.mapping": "best_fit",
        "barnabas.spark.partitions": "3",
        "barnabas.spark.slice.rows": "40",
        "poll.interval.ms": "100",
        **database.config,
    }
    return {**found, **{name.replace("_", "."): text for name, text in more.items()}}


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_numbers_are_followed_in_slices_and_a_restart_goes_on(
    database: Database, tasks: Tasks, barnabas_broker: Any, tmp_path: Path
) -> None:
    filled(database, 100)
    name = tasks.worker["offset.storage.topic"].removeprefix("offsets-")
    wanted = config(database, f"{name}-", mode="incrementing", incrementing_column_name="id")
    states = tasks.start(name, wanted)
    until(lambda: tasks.progress(name).commits == 3 or states.last == "FAILED")
    assert states.last == "RUNNING", states.trace
    assert (tasks.progress(name).done, tasks.progress(name).total) == (100, 100)
    tasks.runner.stop(name, 0, 60)
    database.sql("INSERT INTO orders VALUES (20000, 1.5, 'late')")
    tasks.start(name, wanted)
    until(lambda: tasks.progress(name).commits == 1)
    found = read_topic(barnabas_broker.bootstrap, f"{name}-orders")
    assert [value["id"] for _, _, _, value in found] == [*(n * n for n in range(1, 101)), 20000]
    assert found[0][3] == {"id": 1, "amount": 1.25, "note": "note 1"}


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_bulk_reads_all_rows_in_each_pass(
    database: Database, tasks: Tasks, barnabas_broker: Any, tmp_path: Path
) -> None:
    filled(database, 50)
    name = tasks.worker["offset.storage.topic"].removeprefix("offsets-")
    states = tasks.start(name, config(database, f"{name}-", mode="bulk", poll_interval_ms="600000"))
    until(lambda: tasks.progress(name).commits == 2 or states.last == "FAILED")
    assert states.last == "RUNNING", states.trace
    found = read_topic(barnabas_broker.bootstrap, f"{name}-orders")
    assert [value["id"] for _, _, _, value in found] == [n * n for n in range(1, 51)]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_ranges_have_nearly_the_same_number_of_rows(database: Database) -> None:
    filled(database, 90)
    dialect = database.dialect
    connection = dialect.connect()
    try:
        table = dialect.find(connection, ["orders"])
        assert table is not None
        found = next_slice(dialect, connection, table, "id", 100, 60, 4)
        assert found is not None and found.rows == 60 and found.until == 70 * 70
        assert [each.until for each in found.ranges] == [25**2, 40**2, 55**2, 70**2]
        assert found.ranges[0].after == 100
        assert next_slice(dialect, connection, table, "id", 90 * 90, 60, 4) is None
    finally:
        connection.close()


def test_settings_that_need_threads_are_refused_for_spark_jobs() -> None:
    wrong = JdbcSourceConnector().check(
        {"mode": "timestamp", "timestamp.column.name": "t", "barnabas.spark.partitions": "4"}
    )
    assert "needs threads" in wrong["mode"][0]
    assert not JdbcSourceConnector().check({"mode": "bulk", "spark.master": "spark://host:7077"})
