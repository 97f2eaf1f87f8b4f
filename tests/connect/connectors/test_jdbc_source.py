"""The JDBC source against real databases."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from tests.connect.connectors.jdbc_servers import Database, Offsets, Source, running

from barnabas.connect.config import ConfigError
from barnabas.connect.connectors.databases.address import AddressError, read_address
from barnabas.connect.connectors.jdbc.queries import Position
from barnabas.connect.connectors.jdbc.source import JdbcSourceConnector
from barnabas.connect.plugins import ConnectError, Plugins, RetriableError


@pytest.fixture(scope="module", params=["sqlite", "postgresql", "mysql"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with running(request.param, tmp_path_factory.mktemp("database")) as found:
        yield found


ORDERS = (
    "CREATE TABLE {} (id INTEGER NOT NULL PRIMARY KEY, item VARCHAR(20), price DECIMAL(8,2),"
    " at TIMESTAMP NOT NULL)"
)


def fill(database: Database, table: str, ids: range, minute: int = 0) -> None:
    for each in ids:
        database.sql(
            f"INSERT INTO {table} VALUES ({each}, 'item {each}', {each}.25, '2024-05-01 12:{minute:02d}:00')"
        )


def config(database: Database, table: str, mode: str, **more: str) -> dict[str, str]:
    given = {**database.config, "topic.prefix": "db-", "table.whitelist": table, "mode": mode}
    return given | {name.replace("_", "."): value for name, value in more.items()}


def test_new_rows_come_by_a_growing_number_and_a_restart_goes_on(database: Database) -> None:
    database.sql(ORDERS.format("orders"))
    fill(database, "orders", range(1, 8))
    offsets = Offsets()
    given = config(database, "orders", "incrementing", incrementing_column_name="id", batch_max_rows="3")
    source = Source(given, offsets)
    [first, *_] = batches = source.poll()
    assert [len(each) for each in batches] == [3, 3, 1]
    assert first.topics.to_pylist()[0] == "db-orders"
    assert first.keys.pylist() == [None] * 3
    assert first.values.pylist()[0] == {
        "id": 1,
        "item": "item 1",
        "price": Decimal("1.25"),
        "at": datetime(2024, 5, 1, 12, tzinfo=UTC),
    }
    assert [one.schema.optional for one in first.values.schema.fields] == [False, True, True, False]
    source.stop()
    fill(database, "orders", range(8, 10))
    again = Source(given, offsets)
    assert [each["id"] for each in again.values()] == [8, 9]
    [partition] = offsets.stored
    assert '"protocol": "1"' in partition and "orders" in partition
    assert offsets.stored[partition] == {"incrementing": 9}
    again.stop()


def test_changed_rows_come_by_time_and_number(database: Database) -> None:
    database.sql(ORDERS.format("changes"))
    fill(database, "changes", range(1, 4))
    given = config(
        database,
        "changes",
        "timestamp+incrementing",
        incrementing_column_name="id",
        timestamp_column_name="at",
    )
    offsets = Offsets()
    source = Source(given, offsets)
    assert [each["id"] for each in source.values()] == [1, 2, 3]
    database.sql("UPDATE changes SET item = 'new', at = '2024-05-01 12:01:00' WHERE id = 2")
    fill(database, "changes", range(4, 5))  # the same time as the first three, a higher number: behind them
    assert [(each["id"], each["item"]) for each in source.values()] == [(4, "item 4"), (2, "new")]
    [offset] = offsets.stored.values()
    assert offset == {"incrementing": 2, "timestamp": 1714564860000, "timestamp_nanos": 0}
    source.stop()


def test_rows_of_one_time_are_not_lost_between_two_batches(database: Database) -> None:
    database.sql(ORDERS.format("ties"))
    fill(database, "ties", range(1, 3))
    fill(database, "ties", range(3, 8), minute=1)
    given = config(database, "ties", "timestamp", timestamp_column_name="at", batch_max_rows="3")
    offsets = Offsets()
    source = Source(given, offsets)
    source.poll(1)
    source.stop()  # in the middle of the rows of 12:01
    again = Source(given, offsets)
    assert {each["id"] for each in again.values()} == {3, 4, 5, 6, 7}
    again.stop()


def test_bulk_reads_everything_at_each_poll_and_follows_the_table(database: Database) -> None:
    database.sql("CREATE TABLE bulky (id INTEGER NOT NULL PRIMARY KEY, a VARCHAR(5))")
    database.sql("INSERT INTO bulky VALUES (1, 'x')")
    source = Source(config(database, "bulky", "bulk", barnabas_key_from_table="true"), Offsets())
    [first, *_] = source.poll(1)
    assert first.values.pylist() == [{"id": 1, "a": "x"}] and first.keys.pylist() == [{"id": 1}]
    source.tasks[0].poll()
    database.sql("ALTER TABLE bulky ADD b INTEGER")
    [second, *_] = source.poll(1)
    assert second.values.pylist() == [{"id": 1, "a": "x", "b": None}]
    source.stop()


def test_a_query_is_read_in_place_of_tables(database: Database) -> None:
    database.sql(ORDERS.format("asked"))
    fill(database, "asked", range(1, 4))
    given = {
        **database.config,
        "topic.prefix": "asked",
        "mode": "incrementing",
        "incrementing.column.name": "id",
    }
    given["query"] = "SELECT * FROM (SELECT id, item FROM asked WHERE id > 1) x"
    offsets = Offsets()
    source = Source(given, offsets)
    assert [int(each["id"]) for each in source.values()] == [2, 3]
    assert offsets.stored == {'{"query": "query"}': {"incrementing": 3}}
    source.stop()


def test_tables_are_divided_among_tasks(database: Database) -> None:
    for name in ("part_a", "part_b", "part_c"):
        database.sql(
            f"CREATE TABLE {name} (id INTEGER NOT NULL PRIMARY KEY)", f"INSERT INTO {name} VALUES (1)"
        )
    given = config(database, "part_a,part_b,part_c", "incrementing", incrementing_column_name="id")
    source = Source(given, Offsets(), tasks_max=2)
    assert len(source.configs) == 2
    assert {records.topics.to_pylist()[0] for records in source.poll()} == {
        "db-part_a",
        "db-part_b",
        "db-part_c",
    }
    source.stop()


def test_a_nullable_or_missing_column_is_refused_with_its_name(database: Database) -> None:
    database.sql("CREATE TABLE loose (id INTEGER, at TIMESTAMP NULL)")
    for column, text in (("id", "may be null"), ("number", "has no column number")):
        source = Source(config(database, "loose", "incrementing", incrementing_column_name=column), Offsets())
        with pytest.raises(ConnectError, match=text):
            source.tasks[0].poll()
        source.stop()


def test_settings_that_do_not_fit_are_named() -> None:
    check = JdbcSourceConnector().check
    assert "timestamp.column.name" in check({"mode": "timestamp", "connection.url": "jdbc:sqlite:/x"})
    assert "connection.url" in check({"mode": "bulk", "connection.url": "jdbc:oracle:thin:@//h/x"})
    assert "table.blacklist" in check({"mode": "bulk", "table.whitelist": "a", "table.blacklist": "b"})
    with pytest.raises(AddressError) as error:
        read_address("jdbc:mysql//me:hunter2@h/x?password=hunter2")
    assert "hunter2" not in str(error.value)


def test_offsets_of_confluent_are_understood() -> None:
    offset = {"incrementing": 4, "timestamp": 1714564860123, "timestamp_nanos": 123456000}
    assert Position.of(offset).time == datetime(2024, 5, 1, 12, 1, 0, 123456, tzinfo=UTC)
    assert Position.of(offset).offset == offset


def test_java_names_mean_these_connectors() -> None:
    for name in (
        "io.confluent.connect.jdbc.JdbcSourceConnector",
        "io.aiven.connect.jdbc.JdbcSourceConnector",
    ):
        assert Plugins().connector(name) is JdbcSourceConnector


def test_a_server_that_is_away_is_retried_and_found_again(tmp_path: Path) -> None:
    with running("postgresql", tmp_path) as database:
        database.sql("CREATE TABLE calm (id INTEGER NOT NULL PRIMARY KEY)", "INSERT INTO calm VALUES (1)")
        source = Source(config(database, "calm", "incrementing", incrementing_column_name="id"), Offsets())
        assert source.values() == [{"id": 1}]
        database.server.stop()
        with pytest.raises(RetriableError, match=r"127.0.0.1"):
            for _ in range(10):
                source.tasks[0].poll()
        database.server.start()
        database.sql("INSERT INTO calm VALUES (2)")
        assert source.values() == [{"id": 2}]
        source.stop()


def test_columns_of_positions_may_differ_by_table(database: Database) -> None:
    database.sql(
        "CREATE TABLE m_orders (id INTEGER NOT NULL PRIMARY KEY, made TIMESTAMP NOT NULL)",
        "CREATE TABLE m_drivers (nr INTEGER NOT NULL PRIMARY KEY, made TIMESTAMP, changed TIMESTAMP)",
        "INSERT INTO m_orders VALUES (1, '2024-05-01 12:00:00')",
        "INSERT INTO m_drivers VALUES (4, '2024-05-01 12:00:00', NULL)",
    )
    given = config(
        database,
        "m_orders,m_drivers",
        "timestamp+incrementing",
        incrementing_column_mapping=r".*orders:id,.*\.m_drivers|m_drivers:nr",
        timestamp_columns_mapping="m_orders:[made],m_drivers:[changed|made]",
    )
    offsets = Offsets()
    source = Source(given, offsets, tasks_max=2)
    assert sorted(str(next(iter(each.items()))) for each in source.values()) == ["('id', 1)", "('nr', 4)"]
    database.sql(
        "INSERT INTO m_orders VALUES (2, '2024-05-01 12:00:00')",
        "UPDATE m_drivers SET changed = '2024-05-01 12:00:01'",
    )
    assert sorted(str(next(iter(each.items()))) for each in source.values()) == ["('id', 2)", "('nr', 4)"]
    source.stop()


@pytest.mark.parametrize(
    ("more", "setting", "message"),
    [
        ({"incrementing.column.mapping": "orders"}, "incrementing.column.mapping", "write expression:column"),
        ({"incrementing.column.mapping": "a:[b|c]"}, "incrementing.column.mapping", "one growing column"),
        ({"incrementing.column.mapping": "(:b"}, "incrementing.column.mapping", "is wrong"),
        (
            {"incrementing.column.mapping": "a:b", "incrementing.column.name": "b"},
            "incrementing.column.mapping",
            "exclusive",
        ),
        (
            {"incrementing.column.mapping": "a:b", "query": "SELECT 1"},
            "incrementing.column.mapping",
            "no tables",
        ),
        ({"mode": "bulk", "timestamp.columns.mapping": "a:b"}, "timestamp.columns.mapping", "mode bulk"),
        ({"transaction.isolation.mode": "CHAOS"}, "", "CHAOS"),
    ],
)
def test_wrong_mappings_are_named(more: dict[str, str], setting: str, message: str) -> None:
    given = {"connection.url": "jdbc:sqlite:x.db", "topic.prefix": "t", "mode": "incrementing", **more}
    if setting:
        assert message in JdbcSourceConnector().check(given)[setting][0]
        return
    with pytest.raises(ConfigError, match=message):
        JdbcSourceConnector.CONFIG.parse(given)


def test_a_table_that_no_expression_matches_is_named(database: Database) -> None:
    database.sql("CREATE TABLE alone (id INTEGER NOT NULL PRIMARY KEY)")
    for mapping, message in (("others:id", "no expression matches"), ("al.*:id,.*one:id", "2 expressions")):
        given = config(database, "alone", "incrementing", incrementing_column_mapping=mapping)
        source = Source(given, Offsets())
        with pytest.raises(ConnectError, match=message):
            source.poll()
        source.stop()


LEVELS = {
    "postgresql": "SELECT current_setting('transaction_isolation') AS level",
    "mysql": "SELECT @@tx_isolation AS level",
}


def test_the_isolation_of_transactions_is_that_of_the_setting(database: Database) -> None:
    query = LEVELS.get(database.url.split(":")[1])
    if query is None:
        query = "SELECT 'serializable' AS level"  # SQLite has no other
    given = {**database.config, "topic.prefix": "levels", "mode": "bulk", "query": query}
    source = Source({**given, "transaction.isolation.mode": "serializable"}, Offsets())
    found = source.poll(1)[0].values.pylist()
    source.stop()
    assert [each["level"].lower() for each in found] == ["serializable"]
