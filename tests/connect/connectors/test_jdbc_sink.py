"""The JDBC sink against real databases."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.connect.connectors.jdbc_servers import Database, Sink, running

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.connectors.jdbc.sink import JdbcSinkConnector
from barnabas.connect.connectors.jdbc.source import JdbcSourceConnector
from barnabas.connect.data import (
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIMESTAMP,
    Column,
    Records,
    Schema,
    array,
    decimal,
    struct,
)
from barnabas.connect.plugins import ConnectError, RetriableError

KEY = struct(id=INT32)
VALUE = struct(name="orders", item=OPTIONAL_STRING, price=decimal(2, optional=True), at=TIMESTAMP)
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module", params=["sqlite", "postgresql", "mysql"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with running(request.param, tmp_path_factory.mktemp("database")) as found:
        yield found


def records(topic: str, rows: list[tuple[int, Any]], start: int = 0, value: Schema = VALUE) -> Records:
    """Keys and values; offsets count from `start`."""
    count = len(rows)
    return Records.of(
        topic,
        Column.of([each for _, each in rows], value),
        Column.of([{"id": key} for key, _ in rows], KEY),
        partitions=[0] * count,
        offsets=list(range(start, start + count)),
    )


def order(item: str, price: str = "1.50") -> dict[str, Any]:
    return {"item": item, "price": Decimal(price), "at": NOON}


def config(database: Database, **more: str) -> dict[str, str]:
    given = {**database.config, "auto.create": "true", "pk.mode": "record_key", "insert.mode": "upsert"}
    return given | {name.replace("_", "."): value for name, value in more.items()}


def test_upserts_and_deletes_keep_their_order(database: Database) -> None:
    sink = Sink(config(database, delete_enabled="true"))
    rows = [(1, order("a")), (2, order("b")), (1, order("c", "9.99")), (2, None), (3, order("d")), (3, None)]
    for _ in range(2):  # the second time as after a kill: nothing changes
        sink.task.put(records("orders", [*rows, (3, order("e"))]))
        found = database.rows("SELECT id, item, price FROM orders ORDER BY id")
        assert [(key, item, Decimal(str(price))) for key, item, price in found] == [
            (1, "c", Decimal("9.99")),
            (3, "e", Decimal("1.50")),
        ]
    sink.task.stop()


def test_a_new_field_becomes_a_column_only_if_that_is_allowed(database: Database) -> None:
    sink = Sink(config(database))
    sink.task.put(records("grows", [(1, order("a"))]))
    wider = struct(
        name="orders",
        item=OPTIONAL_STRING,
        price=decimal(2, optional=True),
        at=TIMESTAMP,
        note=OPTIONAL_STRING,
    )
    changed = records("grows", [(2, {**order("b"), "note": "new"})], value=wider)
    with pytest.raises(ConnectError, match=r"no columns note.*auto.evolve"):
        sink.task.put(changed)
    sink.task.stop()
    evolving = Sink(config(database, auto_evolve="true"))
    evolving.task.put(changed)
    assert database.rows("SELECT id, note FROM grows ORDER BY id") == [(1, None), (2, "new")]
    required = struct(name="orders", item=OPTIONAL_STRING, must=STRING)
    with pytest.raises(ConnectError, match=r"required and has no default"):
        evolving.task.put(records("grows", [(3, {"item": "x", "must": "y"})], value=required))
    evolving.task.stop()


def test_offsets_in_the_transaction_make_plain_inserts_exactly_once(database: Database) -> None:
    given = config(database, insert_mode="insert", pk_mode="none", barnabas_offsets_table="kafka_offsets")
    given["table.name.format"] = "t_${topic}"
    sink = Sink(given)
    where = TopicPartition("plain", 0)
    sink.task.open([where])
    assert sink.sought == {}
    sink.task.put(records("plain", [(1, order("a")), (2, order("b"))], start=7))
    sink.task.stop()
    again = Sink(given)
    again.task.open([where])
    assert again.sought == {where: 9}
    again.task.stop()
    assert database.rows("SELECT count(*) FROM t_plain") == [(2,)]


def test_rows_are_found_by_the_record_s_coordinates(database: Database) -> None:
    sink = Sink(config(database, pk_mode="kafka", insert_mode="upsert"))
    for _ in range(2):
        sink.task.put(records("places", [(1, order("a")), (1, order("b"))], start=3))
    names = "__connect_topic, __connect_partition, __connect_offset, item"
    assert database.rows(f"SELECT {names} FROM places ORDER BY 3") == [
        ("places", 0, 3, "a"),
        ("places", 0, 4, "b"),
    ]
    sink.task.stop()


def test_a_record_that_does_not_fit_is_reported_alone(database: Database) -> None:
    database.sql("CREATE TABLE strict (id INTEGER PRIMARY KEY, item VARCHAR(20) NOT NULL)")
    sink = Sink(config(database, auto_create="false", fields_whitelist="item"))
    sink.task.put(records("strict", [(1, order("a")), (2, {**order("b"), "item": None}), (3, order("c"))]))
    assert database.rows("SELECT id, item FROM strict ORDER BY id") == [(1, "a"), (3, "c")]
    [(indices, error)] = sink.errants
    assert indices == [1] and "strict-0 offset 1" in str(error)
    sink.task.stop()


def test_a_record_that_does_not_fit_leaves_nothing_if_it_is_not_tolerated(database: Database) -> None:
    database.sql("CREATE TABLE whole (id INTEGER PRIMARY KEY, item VARCHAR(20) NOT NULL)")
    given = config(
        database, auto_create="false", fields_whitelist="item", barnabas_offsets_table="whole_offsets"
    )
    sink = Sink({**given, "insert.mode": "insert"})
    sink.task.open([TopicPartition("whole", 0)])

    def refuse(*_: Any) -> None:
        raise ConnectError("not tolerated")

    sink.task.context.errant = refuse
    rows = [(1, order("a")), (2, {**order("b"), "item": None}), (3, order("c"))]
    with pytest.raises(ConnectError, match=r"not tolerated"):
        sink.task.put(records("whole", rows))
    assert database.rows("SELECT id FROM whole") == []
    sink.task.context.errant = lambda *_: None
    sink.task.put(records("whole", rows))
    assert database.rows("SELECT id FROM whole ORDER BY id") == [(1,), (3,)]
    assert database.rows("SELECT next_offset FROM whole_offsets") == [(3,)]
    sink.task.stop()


def test_a_server_that_is_away_is_asked_again(database: Database) -> None:
    if database.server is None:
        pytest.skip("a file is not away")
    away = config(database, barnabas_offsets_table="away_offsets")
    away["connection.url"] = away["connection.url"].replace(str(database.server.port), "1")
    sink = Sink(away)
    with pytest.raises(RetriableError, match=r"127.0.0.1"):
        sink.task.open([TopicPartition("away", 0)])
    with pytest.raises(RetriableError, match=r"127.0.0.1"):
        sink.task.put(records("away", [(1, order("a"))]))
    sink.task.stop()


def test_records_that_are_no_rows_are_reported_alone(database: Database) -> None:
    sink = Sink(config(database))
    sink.task.put(records("mixed", [(1, order("a")), (2, None), (3, order("c"))]))
    assert database.rows("SELECT id, item FROM mixed ORDER BY id") == [(1, "a"), (3, "c")]
    sink.task.put(Records.of("mixed", Column.of([{"a": 1}, {"a": 2}]), partitions=[0, 0], offsets=[3, 4]))
    no_key = Records.of("mixed", Column.of([order("d")], VALUE), partitions=[0], offsets=[5])
    sink.task.put(no_key)
    texts = [(indices, str(error)) for indices, error in sink.errants]
    assert [indices for indices, _ in texts] == [[1], [0], [1], [0]]
    assert "mixed-0 offset 1" in texts[0][1] and "delete.enabled=true" in texts[0][1]
    assert "mixed-0 offset 4" in texts[2][1] and "converter with schemas" in texts[2][1]
    assert "needs keys with a schema" in texts[3][1]
    sink.task.stop()


def test_a_stalled_task_writes_nothing_again_and_sets_no_offset_back(database: Database) -> None:
    given = config(database, insert_mode="insert", pk_mode="none", barnabas_offsets_table="fence_offsets")
    given["table.name.format"] = "f_${topic}"
    where = TopicPartition("fenced", 0)
    stalled, other = Sink(given), Sink(given)
    for each in (stalled, other):
        each.task.open([where])
    rows = [(1, order("a")), (2, order("b")), (3, {**order("c")})]
    other.task.put(records("fenced", rows))
    stalled.task.put(records("fenced", rows[:2]))  # all of it is there
    assert database.rows("SELECT next_offset FROM fence_offsets") == [(3,)]
    stalled.task.put(records("fenced", [rows[2], (4, order("d"))], start=2))  # a part of it
    assert database.rows("SELECT item FROM f_fenced ORDER BY item") == [("a",), ("b",), ("c",), ("d",)]
    assert database.rows("SELECT next_offset FROM fence_offsets") == [(4,)]
    for each in (stalled, other):
        each.task.stop()


def test_offsets_in_the_database_are_altered_with_those_of_the_group(database: Database) -> None:
    given = config(database, insert_mode="insert", pk_mode="none", barnabas_offsets_table="moved_offsets")
    where, partition = TopicPartition("moved", 0), {"kafka_topic": "moved", "kafka_partition": 0}
    named = {**given, "name": "sink"}
    connector = JdbcSinkConnector()
    assert connector.alter_offsets(named, [(partition, {"kafka_offset": 5})]) is True
    sink = Sink(given)
    sink.task.open([where])
    assert sink.sought == {where: 5}
    assert connector.alter_offsets(named, [(partition, None)]) is True
    assert database.rows("SELECT count(*) FROM moved_offsets") == [(0,)]
    assert connector.alter_offsets(config(database), [(partition, None)]) is False
    with pytest.raises(ConnectError, match=r"no offsets of a topic"):
        connector.alter_offsets(named, [({"kafka_topic": "moved"}, None)])
    sink.task.stop()


def test_updates_change_only_rows_that_exist(database: Database) -> None:
    database.sql(
        "CREATE TABLE kept (id INTEGER PRIMARY KEY, item VARCHAR(20))", "INSERT INTO kept VALUES (1, 'old')"
    )
    sink = Sink(config(database, insert_mode="update", fields_whitelist="item"))
    sink.task.put(records("kept", [(1, order("new")), (2, order("none"))]))
    assert database.rows("SELECT id, item FROM kept") == [(1, "new")]
    sink.task.stop()


def test_values_that_no_table_takes_are_refused_with_advice(database: Database) -> None:
    sink = Sink(config(database))
    nested = struct(inner=struct(a=INT64))
    with pytest.raises(ConnectError, match=r"Flatten"):
        sink.task.put(records("x", [(1, {"inner": {"a": 1}})], value=nested))
    missing = Sink(config(database, auto_create="false"))
    with pytest.raises(ConnectError, match=r"nothere is missing.*auto.create"):
        missing.task.put(records("nothere", [(1, order("a"))]))
    sink.task.stop()
    missing.task.stop()


def test_arrays_are_columns_where_the_database_has_them(database: Database) -> None:
    sink = Sink(config(database))
    given = records("lists", [(1, {"tags": ["a", "b"]})], value=struct(tags=array(STRING)))
    if database.dialect.HAS_ARRAYS:
        sink.task.put(given)
        assert database.rows("SELECT tags FROM lists") == [(["a", "b"],)]
    else:
        with pytest.raises(ConnectError, match=r"tags is array"):
            sink.task.put(given)
    sink.task.stop()


def test_settings_that_do_not_fit_are_named() -> None:
    check = JdbcSinkConnector().check
    assert "pk.mode" in check({"delete.enabled": "true"})
    assert "pk.mode" in check({"insert.mode": "upsert"})
    assert "pk.fields" in check({"pk.mode": "kafka", "pk.fields": "a,b"})


def test_settings_without_effect_are_named() -> None:
    ignored = JdbcSinkConnector.CONFIG.ignored
    assert ignored({"connection.attempts": "3", "trim.sensitive.log": "false"}) == {}
    assert list(ignored({"connection.attempts": "9", "date.timezone": "UTC"})) == [
        "connection.attempts",
        "date.timezone",
    ]
    assert JdbcSourceConnector.CONFIG.ignored({"transaction.isolation.mode": "SERIALIZABLE"}) == {}
