"""Debezium's transforms of change events, over events as change capture makes them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from barnabas.connect.config import ConfigError
from barnabas.connect.connectors.debezium.envelope import Change, TableSchemas
from barnabas.connect.connectors.debezium.heartbeat import heartbeat
from barnabas.connect.connectors.postgres_cdc.capture import SOURCE
from barnabas.connect.data import INT64, OPTIONAL_STRING, STRING, Field, Records
from barnabas.connect.plugins import Kind, Plugins
from barnabas.connect.transforms.chain import Step, TransformChain

ORDERS = TableSchemas(
    "shop.public.orders", (Field("id", INT64), Field("item", OPTIONAL_STRING)), ("id",), SOURCE
)
OUTBOX = TableSchemas(
    "shop.public.outbox",
    (
        Field("id", STRING),
        Field("aggregatetype", STRING),
        Field("aggregateid", STRING),
        Field("type", STRING),
        Field("payload", OPTIONAL_STRING),
    ),
    ("id",),
    SOURCE,
)
WHERE = {
    "version": "1", "connector": "postgresql", "name": "shop", "ts_ms": 7, "snapshot": "false", "db": "d",
    "sequence": None, "ts_us": 7000, "ts_ns": 7_000_000, "schema": "public", "table": "orders", "txId": 1,
    "lsn": 42, "xmin": None,
}  # fmt: skip
STORY = (
    Change("c", None, (1, "a"), WHERE),
    Change("u", (1, "a"), (1, "b"), WHERE),
    Change("d", (1, "b"), None, WHERE),
    Change("r", None, (2, None), WHERE),
)


def events(table: TableSchemas = ORDERS, changes: tuple[Change, ...] = STORY) -> Records:
    return table.records(changes, 9_000_000, [])


def transform(name: str, **config: str) -> Any:
    found = Plugins().load(f"io.debezium.transforms.{name}", Kind.TRANSFORMATION)()
    found.configure({each.replace("_", "."): value for each, value in config.items()})
    return found


def passed(made: Any, records: Records) -> list[Any]:
    done = TransformChain([Step("t", "T", made)]).apply(records)
    assert not done.failures, done.failures
    return [row for part in done.parts for row in part.records.rows()]


A, B, NONE = {"id": 1, "item": "a"}, {"id": 1, "item": "b"}, {"id": 2, "item": None}
KEPT = [{**A, "__deleted": "false"}, {**B, "__deleted": "false"}]


@pytest.mark.parametrize(
    ("config", "values"),
    [
        ({}, [A, B, None, NONE]),
        ({"delete_tombstone_handling_mode": "drop"}, [A, B, NONE]),
        ({"delete_tombstone_handling_mode": "delete-to-tombstone"}, [A, B, None, NONE]),
        (
            {"delete_tombstone_handling_mode": "rewrite"},
            [*KEPT, {**B, "__deleted": "true"}, {**NONE, "__deleted": "false"}],
        ),
        (
            {"delete_tombstone_handling_mode": "rewrite-with-tombstone"},
            [*KEPT, {**B, "__deleted": "true"}, None, {**NONE, "__deleted": "false"}],
        ),
        ({"delete_handling_mode": "drop"}, [A, B, NONE]),
        ({"delete_handling_mode": "drop", "drop_tombstones": "false"}, [A, B, None, NONE]),
        ({"delete_handling_mode": "none"}, [A, B, None, NONE]),
    ],
)
def test_events_become_rows_and_deletes_follow_the_mode(config: dict[str, str], values: list[Any]) -> None:
    rows = passed(transform("ExtractNewRecordState", **config), events())
    assert [row.value for row in rows] == values
    assert [row.key["id"] for row in rows] == [2 if each and each["id"] == 2 else 1 for each in values]
    for row in rows:
        if row.value is None:  # a tombstone is written without bytes, not as a null with a schema
            assert row.value_schema is None or not row.value_schema.optional
        else:
            assert row.value_schema is not None and row.value_schema.name == "shop.public.orders.Value"


def test_fields_of_the_envelope_go_into_the_row_and_the_headers() -> None:
    made = transform(
        "ExtractNewRecordState",
        add_fields="op,table,source.ts_ms,lsn:place,nothing",
        add_headers="op,transaction.id",
        add_headers_prefix="h.",
        route_by_field="item",
    )
    rows = passed(made, events(changes=STORY[:3]))
    more = {"__table": "orders", "__source_ts_ms": 7, "__place": 42}
    assert [row.value for row in rows] == [{**A, "__op": "c", **more}, {**B, "__op": "u", **more}, None]
    assert [row.topic for row in rows] == ["a", "b", "shop.public.orders"]
    assert [(each.name, each.value) for each in rows[0].headers] == [
        ("h.op", "c"),
        ("h.transaction_id", None),
    ]
    assert rows[2].headers == ()


def test_a_deleted_row_is_routed_by_what_it_was() -> None:
    made = transform(
        "ExtractNewRecordState", route_by_field="item", delete_tombstone_handling_mode="delete-to-tombstone"
    )
    [row] = passed(made, events(changes=STORY[2:3]))
    assert (row.topic, row.value) == ("b", None)


def test_truncates_are_dropped_and_other_records_pass() -> None:
    made = transform("ExtractNewRecordState")
    assert passed(made, events(changes=(Change("t", None, None, WHERE),))) == []
    beat = heartbeat("__debezium-heartbeat.shop", "shop", ({}, {}))
    [row] = passed(made, beat)
    assert row.value == next(iter(beat.rows())).value


def event(name: str, payload: str | None, kind: str = "order", op: str = "c") -> Change:
    row = (name, kind, f"key-{name}", "created", payload)
    return Change(op, None if op == "c" else row, None if op == "d" else row, WHERE)


def test_rows_of_an_outbox_become_messages(caplog: pytest.LogCaptureFixture) -> None:
    changes = (
        event("1", '{"n":1}'), event("2", None), event("3", "x", "bill"), event("4", "y", op="u"),
        event("5", "z", op="d"),
    )  # fmt: skip
    with caplog.at_level(logging.WARNING):
        rows = passed(transform("outbox.EventRouter"), events(OUTBOX, changes))
    assert [(row.topic, row.key, row.value) for row in rows] == [
        ("outbox.event.order", "key-1", '{"n":1}'),
        ("outbox.event.order", "key-2", None),
        ("outbox.event.bill", "key-3", "x"),
    ]
    assert [[(each.name, each.value) for each in row.headers] for row in rows] == [
        [("id", "1")],
        [("id", "2")],
        [("id", "3")],
    ]
    assert rows[0].timestamp == 9
    assert "operation u, which is left out" in caplog.text


def test_an_outbox_with_more_columns_and_payloads_of_json() -> None:
    made = transform(
        "outbox.EventRouter",
        table_expand_json_payload="true",
        table_fields_additional_placement="type:header:kind,aggregatetype:envelope",
        route_topic_replacement="events.${routedByValue}",
        route_tombstone_on_empty_payload="true",
    )
    rows = passed(made, events(OUTBOX, (event("1", '{"n":[1]}'), event("2", ""), event("3", "no json"))))
    assert [row.value for row in rows] == [
        {"payload": {"n": [1]}, "aggregatetype": "order"},
        None,
        {"payload": "no json", "aggregatetype": "order"},
    ]
    assert rows[0].topic == "events.order"
    assert [(each.name, each.value) for each in rows[0].headers] == [("id", "1"), ("kind", "created")]
    more = transform("outbox.EventRouter", table_fields_additional_placement="type:envelope:kind")
    [row] = passed(more, events(OUTBOX, (event("1", "x"),)))
    assert row.value == {"payload": "x", "kind": "created"}
    with pytest.raises(ConfigError, match="column:placement"):
        transform("outbox.EventRouter", table_fields_additional_placement="type")


def test_an_update_of_an_outbox_is_an_error_if_that_is_fatal() -> None:
    made = transform("outbox.EventRouter", table_op_invalid_behavior="fatal")
    done = TransformChain([Step("t", "T", made)]).apply(
        events(OUTBOX, (event("1", "x"), event("2", "y", op="u")))
    )
    assert list(done.failures) == [1]
    assert [row.value for part in done.parts for row in part.records.rows()] == ["x"]


def test_tables_go_to_one_topic_and_keys_tell_them_apart() -> None:
    made = transform(
        "ByLogicalTableRouter",
        topic_regex=r"(.*)\.orders_\d+",
        topic_replacement="$1.orders",
        key_field_name="shard",
        key_field_regex=r".*_(\d+)",
        key_field_replacement="$1",
    )
    shard = TableSchemas("shop.public.orders_3", ORDERS.fields, ("id",), SOURCE)
    rows = passed(made, events(shard))
    assert {row.topic for row in rows} == {"shop.public.orders"}
    assert [row.key for row in rows] == [{"id": 1, "shard": "3"}] * 4 + [{"id": 2, "shard": "3"}]
    schema = rows[0].value_schema
    assert schema == ORDERS.envelope
    assert rows[0].key_schema.name == "shop.public.orders.Key"
    assert [row.value is None for row in rows] == [False, False, False, True, False]
    [other] = passed(made, heartbeat("beat", "shop", ({}, {})))
    assert other.topic == "beat" and other.key == {"serverName": "shop"}
