"""Tables of databases: whole, by a growing number, by time, by both; SQLite, real PostgreSQL and MySQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from barnabas.engine.errors import NeedsDecision, SourceUnavailable
from barnabas.pipeline import Pipeline, Schema, Secret, Staging, TableMode, TableSource, Trusted, in_range
from barnabas.pipeline.demo import postgres
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.pipeline.sources import jdbc
from barnabas.pipeline.sources.jdbc import JdbcTable
from barnabas.pipeline.sources.source_slice import Stamp
from barnabas.pipeline.sources.table import TableReader
from barnabas.testing import mysql
from pipeline.orders import rows

pytestmark = pytest.mark.timeout(300)  # Spark takes its time on a machine that is busy

DDL = "id BIGINT, name STRING, updated_at TIMESTAMP"
Execute = Callable[..., None]


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[tuple[str, Execute]]:
    file = tmp_path / "shop.db"
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, updated_at TIMESTAMP)")
    yield f"jdbc:sqlite:{file}", connection.execute
    connection.close()


def customers(lake: str, url: str, **source: Any) -> Pipeline:
    given = {"schema": Schema(DDL), "snapshot_below": 0, **source}
    return Pipeline(
        name="shop",
        lake=lake,
        sources=[TableSource(name="customers", url=url, table="customers", **given)],
        staging=[Staging(name="customers", source="customers", key=["id"])],
        trusted=[Trusted(name="customers", staging="customers", rules=[in_range("id", 0, 100)])],
    )


def test_a_small_table_is_mirrored_and_read_again_only_when_it_changed(
    spark: Any, sqlite: tuple[str, Execute], lake: str
) -> None:
    url, execute = sqlite
    execute("INSERT INTO customers VALUES (1, 'a', '2026-01-01 00:00:00'), (2, 'b', NULL), (500, 'x', NULL)")
    # The mode is another one, the table is small.
    pipeline = customers(lake, url, mode=TableMode.INCREMENTING, incrementing="id", snapshot_below=100)
    runner = SourceRunner(spark, pipeline, "customers")
    [batch] = runner.drain()
    assert (batch.rows_in, batch.staged, batch.accepted, batch.quarantined) == (3, 3, 2, 1)
    assert runner.step() is None
    execute("UPDATE customers SET name = 'c' WHERE id = 2")
    execute("DELETE FROM customers WHERE id = 1")
    [batch] = runner.drain()
    assert batch.rows_in == 2
    assert rows(spark, pipeline, "staging", "customers", "id", "name") == [(2, "c"), (500, "x")]
    assert rows(spark, pipeline, "trusted", "customers", "id", "name") == [(2, "c")]
    assert (
        len(rows(spark, pipeline, "quarantine", "customers", "reason")) == 1
    )  # what is wrong now, not twice
    assert len(rows(spark, pipeline, "raw", "customers", "value")) == 5
    again = SourceRunner(spark, pipeline, "customers")
    assert again.step() is None and again.step() is None


@pytest.mark.long
def test_connections_share_a_table_by_ranges_of_its_key(
    spark: Any, sqlite: tuple[str, Execute], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, execute = sqlite
    execute("CREATE TABLE sales (id INTEGER, shop INTEGER, amount TEXT)")
    execute("INSERT INTO sales VALUES (NULL, 1, 'a'), (-7, 2, 'b'), (0, 3, 'c'), (90, 4, 'd'), (91, 5, 'e')")
    monkeypatch.setattr(jdbc, "NUMBERS_PER_CONNECTION", 10)

    def table(name: str, **given: Any) -> JdbcTable:
        return JdbcTable(spark, TableSource(name="sales", url=url, table=name, **given))

    sales = table("sales", split_by="id", connections=4)
    split = sales.split()
    assert split == jdbc.Split("id", -7, 91, 4)
    found = sales.rows("", split)
    assert found.rdd.getNumPartitions() == 4
    assert sorted(row["amount"] for row in found.collect()) == ["a", "b", "c", "d", "e"]
    some = sales.rows("id > 0", sales.split("id > 0"))  # too few for a second connection
    assert (some.rdd.getNumPartitions(), some.count()) == (1, 2)
    # The primary key is found; a table without one is read by one connection, and so is any if told.
    execute("INSERT INTO customers VALUES (1, 'a', NULL), (100, 'b', NULL)")
    assert table("customers").split() == jdbc.Split("id", 1, 100, 4)
    assert table("sales").split() is None
    assert table("customers", connections=1).split() is None
    with pytest.raises(NeedsDecision, match="the column amount is of type string: name a column of whole"):
        table("sales", split_by="amount").split()


@pytest.mark.long
def test_new_and_changed_rows_are_found_by_number_and_time(
    spark: Any, sqlite: tuple[str, Execute], lake: str
) -> None:
    url, execute = sqlite
    execute("INSERT INTO customers VALUES (1, 'a', '2026-01-01 00:00:00'), (2, 'b', '2026-01-01 00:00:01')")
    by_number = customers(lake, url, mode=TableMode.INCREMENTING, incrementing="id", rows_per_batch_max=2)
    both = customers(
        f"{lake}-both",
        url,
        mode=TableMode.BOTH,
        incrementing="id",
        timestamp="updated_at",
        event_time="updated_at",
    )
    first, second = SourceRunner(spark, by_number, "customers"), SourceRunner(spark, both, "customers")
    assert [batch.rows_in for batch in first.drain()] == [2] and [
        batch.rows_in for batch in second.drain()
    ] == [2]
    execute("INSERT INTO customers VALUES (3, 'c', '2026-01-01 00:00:01'), (4, 'd', '2026-01-01 00:00:05')")
    execute("UPDATE customers SET name = 'A', updated_at = '2026-01-01 00:00:04.5' WHERE id = 1")
    [batch] = first.drain()
    assert (batch.rows_in, first.lag()) == (2, 0)
    [batch] = second.drain()
    assert batch.rows_in == 3 and second.step() is None
    assert rows(spark, by_number, "staging", "customers", "id", "name") == [
        (1, "a"),
        (2, "b"),
        (3, "c"),
        (4, "d"),
    ]
    assert rows(spark, both, "trusted", "customers", "id", "name") == [(1, "A"), (2, "b"), (3, "c"), (4, "d")]


@pytest.mark.long
def test_rows_that_are_committed_late_are_found_by_time_and_others_are_not_read_twice(
    spark: Any, sqlite: tuple[str, Execute], lake: str
) -> None:
    url, execute = sqlite
    execute("INSERT INTO customers VALUES (1, 'a', '2026-01-01 00:00:00'), (2, 'b', '2026-01-01 01:00:00')")
    by_time = customers(lake, url, mode=TableMode.TIMESTAMP, timestamp="updated_at")
    runner = SourceRunner(spark, by_time, "customers")
    assert [batch.rows_in for batch in runner.drain()] == [2]
    assert runner.step() is None
    # Transactions that began earlier commit now: a new row and a changed one, behind the newest time.
    execute("INSERT INTO customers VALUES (3, 'c', '2026-01-01 00:59:58')")
    execute("UPDATE customers SET name = 'A', updated_at = '2026-01-01 00:59:59' WHERE id = 1")
    assert [batch.rows_in for batch in runner.drain()] == [2]
    # Within the window, beside a row that is new.
    execute("UPDATE customers SET name = 'C', updated_at = '2026-01-01 00:59:59.5' WHERE id = 3")
    execute("INSERT INTO customers VALUES (4, 'd', '2026-01-01 01:00:05')")
    again = SourceRunner(spark, by_time, "customers")
    assert [batch.rows_in for batch in again.drain()] == [2]
    assert again.step() is None
    assert rows(spark, by_time, "trusted", "customers", "id", "name") == [
        (1, "A"),
        (2, "b"),
        (3, "C"),
        (4, "d"),
    ]
    assert len(rows(spark, by_time, "raw", "customers", "value")) == 6  # each form of a row once


@pytest.mark.long
def test_a_real_postgresql_with_secrets_by_reference(
    spark: Any, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason := postgres.available():
        pytest.skip(reason)
    import psycopg

    with (
        postgres.Postgres(password="a secret") as server,
        psycopg.connect(server.dsn, autocommit=True) as connection,
    ):
        url, password = server.url, server.password
        monkeypatch.setenv("SHOP_PASSWORD", password)
        connection.execute(
            "CREATE TABLE customers"
            " (id bigserial PRIMARY KEY, name text, updated_at timestamptz DEFAULT now())"
        )
        connection.execute("INSERT INTO customers (name) SELECT 'c' || n FROM generate_series(1, 5) n")
        access = {"user": server.user, "password": Secret("${env:SHOP_PASSWORD}")}
        pipeline = customers(lake, url, mode=TableMode.TIMESTAMP, timestamp="updated_at", **access)
        runner = SourceRunner(spark, pipeline, "customers")
        assert [batch.rows_in for batch in runner.drain()] == [5]
        connection.execute("UPDATE customers SET name = 'changed', updated_at = now() WHERE id = 2")
        [batch] = runner.drain()
        assert batch.rows_in >= 1
        assert rows(spark, pipeline, "trusted", "customers", "id", "name")[:2] == [(1, "c1"), (2, "changed")]
        check_shared_snapshot(spark, f"{lake}-shared", url, connection, access)
        wrong = replace(pipeline, sources=[replace(pipeline.sources[0], table="nobody_made_this")])
        with pytest.raises(SourceUnavailable, match="nobody_made_this"):
            SourceRunner(spark, replace(wrong, lake=f"{lake}-wrong"), "customers").step()
    with pytest.raises(SourceUnavailable) as caught:
        runner.step()
    assert password not in str(caught.value)
    monkeypatch.delenv("SHOP_PASSWORD")
    with pytest.raises(NeedsDecision, match="SHOP_PASSWORD is not set"):
        runner.step()


def check_shared_snapshot(spark: Any, lake: str, url: str, database: Any, access: dict[str, Any]) -> None:
    """Rows of a snapshot leave the database once, over several connections at the same time."""
    database.execute(
        "CREATE SEQUENCE reads; CREATE TABLE readers (pid int);"
        " CREATE TABLE numbers (id bigint PRIMARY KEY, name text, updated_at timestamptz);"
        " INSERT INTO numbers SELECT n, 'n' || n, now() FROM generate_series(1, 60000) n;"
        # Each row that is read counts, and who reads it is noted.
        " CREATE FUNCTION seen(bigint) RETURNS boolean VOLATILE LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM nextval('reads'); IF $1 % 20000 = 1 THEN INSERT INTO readers VALUES (pg_backend_pid());"
        " END IF; RETURN true; END $$;"
        " CREATE VIEW customers_seen AS SELECT * FROM numbers WHERE seen(id)"
    )
    given = {"split_by": "id", "connections": 2, "schema": Schema(DDL), "snapshot_below": 0, **access}
    source = TableSource(name="customers", url=url, table="customers_seen", **given)
    pipeline = replace(customers(lake, url), sources=[source], trusted=[])
    reader = TableReader(spark, source, pipeline.lake_location)
    source_slice = reader.next(None)
    assert source_slice is not None and source_slice.position["snapshot"][0] == 60_000
    stamp = Stamp("customers", 1, datetime.now(UTC))
    found = source_slice.read(stamp)
    offsets = found.select("offset").distinct().count()
    assert (found.count(), offsets) == (60_000, 60_000)
    [(reads,)] = database.execute("SELECT last_value FROM reads").fetchall()
    assert 60_000 <= reads < 61_000  # each row once, and a few for the bounds, which an index has
    reader.done(source_slice, 1)
    assert reader.next(source_slice.position) is None  # unchanged
    [(readers,)] = database.execute("SELECT count(DISTINCT pid) FROM readers").fetchall()
    assert readers >= 3  # one for the bounds, two for each snapshot


@pytest.mark.long
def test_a_real_mysql_in_every_mode(spark: Any, lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """MariaDB, by MySQL's own driver: snapshots, growing numbers, times of change, both."""
    if reason := mysql.available():
        pytest.skip(reason)
    with mysql.MySqlServer() as server:
        monkeypatch.setenv("SHOP_PASSWORD", server.password)
        server.execute(
            "CREATE TABLE customers (id BIGINT PRIMARY KEY AUTO_INCREMENT, name TEXT, note DECIMAL(9, 2),"
            " updated_at DATETIME(6));"
            " INSERT INTO customers VALUES (1, 'a', 1.25, '2026-01-01 00:00:00.000001'),"
            " (2, 'b\u00fc', NULL, '2026-01-01 00:00:01')"
        )
        access = {"user": server.user, "password": Secret("${env:SHOP_PASSWORD}")}
        access["schema"] = Schema("id BIGINT, name STRING, note DECIMAL(9, 2), updated_at TIMESTAMP")
        by_time = {"timestamp": "updated_at"}
        modes = {
            TableMode.SNAPSHOT: {},
            TableMode.INCREMENTING: {"incrementing": "id"},
            TableMode.TIMESTAMP: by_time,
            TableMode.BOTH: {**by_time, "incrementing": "id"},
        }
        pipelines = {
            mode: customers(f"{lake}-{mode.name}", server.url, mode=mode, **given, **access)
            for mode, given in modes.items()
        }
        runners = {mode: SourceRunner(spark, pipeline, "customers") for mode, pipeline in pipelines.items()}
        shared = JdbcTable(spark, pipelines[TableMode.SNAPSHOT].sources[0])
        monkeypatch.setattr(jdbc, "NUMBERS_PER_CONNECTION", 1)
        split = shared.split()
        assert split == jdbc.Split("id", 1, 2, 2)  # by the primary key, which is found
        assert sorted(row["id"] for row in shared.rows("", split).collect()) == [1, 2]
        for runner in runners.values():
            assert [batch.rows_in for batch in runner.drain()] == [2]
        server.execute(
            "UPDATE customers SET name = 'A', updated_at = '2026-01-01 00:00:04.5' WHERE id = 1;"
            " INSERT INTO customers VALUES (3, 'c', 3, '2026-01-01 00:00:01'),"
            " (4, 'd', 4, '2026-01-01 00:00:05'); DELETE FROM customers WHERE id = 2"
        )
        for runner in runners.values():
            assert len(runner.drain()) == 1
            assert runner.step() is None
        found = {
            mode: rows(spark, pipeline, "trusted", "customers", "id", "name")
            for mode, pipeline in pipelines.items()
        }
        there = [(1, "A"), (3, "c"), (4, "d")]
        assert found[TableMode.SNAPSHOT] == there
        assert found[TableMode.INCREMENTING] == [(1, "a"), (2, "b\u00fc"), (3, "c"), (4, "d")]
        # Rows that were deleted are not seen by their time.
        assert found[TableMode.BOTH] == found[TableMode.TIMESTAMP] == [there[0], (2, "b\u00fc"), *there[1:]]
        exact = rows(spark, pipelines[TableMode.SNAPSHOT], "staging", "customers", "note", "updated_at")
        assert (Decimal("3.00"), datetime(2026, 1, 1, 0, 0, 1)) in exact
    with pytest.raises(SourceUnavailable) as caught:
        runners[TableMode.SNAPSHOT].step()
    assert server.password not in str(caught.value)
