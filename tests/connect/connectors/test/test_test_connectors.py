"""Datagen, verifiable, schema and mock connectors; the first two through a worker in a process of its own."""

from __future__ import annotations

import json
from datetime import date, time
from decimal import Decimal
from pathlib import Path

import pytest
from tests.connect.connectors.worker import running_worker, until

from barnabas.connect.connectors.test.datagen import DatagenConnector
from barnabas.connect.connectors.test.mock import MockSourceConnector
from barnabas.connect.connectors.test.quickstarts import QUICKSTARTS
from barnabas.connect.connectors.test.schema_source import SchemaSourceConnector
from barnabas.connect.plugins import ConnectError, Plugins
from barnabas.connect.tasks.kit import Kit
from barnabas.testing.broker import Broker

TOOLS = "org.apache.kafka.connect.tools"
ROW = '{"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}], %s}'


@pytest.mark.parametrize("name", QUICKSTARTS)
def test_every_quickstart_gives_the_same_rows_after_a_restart(name: str) -> None:
    config = {"kafka.topic": "t", "quickstart": name, "max.interval": "0", "iterations": "20"}
    whole = Kit(DatagenConnector, config).poll(20)
    first = Kit(DatagenConnector, {**config, "iterations": "7"})
    begun = first.poll(7)
    [reached] = first.offsets.read([{"task.id": 0}])
    rest = Kit(DatagenConnector, config, offsets=[({"task.id": 0}, reached)]).poll(20)
    assert len(whole) == 20 and len(rest) == 13
    assert [row.value for row in begun + rest] == [row.value for row in whole]
    assert all(row.key == row.value[QUICKSTARTS[name][1]] for row in whole)


def test_a_schema_of_ones_own_is_followed() -> None:
    avro = {
        "type": "record",
        "name": "Row",
        "fields": [
            {"name": "n", "type": {"type": "int", "arg.properties": {"iteration": {"start": 5, "step": 2}}}},
            {"name": "code", "type": {"type": "string", "arg.properties": {"regex": "(a|b)[0-9]{3}x?"}}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "note", "type": ["null", "string"]},
        ],
    }
    config = {"kafka.topic": "t", "schema.string": json.dumps(avro), "max.interval": "0", "iterations": "50"}
    rows = [row.value for row in Kit(DatagenConnector, {**config, "schema.keyfield": "n"}).poll(50)]
    assert [row["n"] for row in rows] == list(range(5, 105, 2))
    assert all(row["code"][0] in "ab" and row["code"][1:4].isdigit() for row in rows)
    assert {row["note"] is None for row in rows} == {True, False}


def test_rows_dates_decimals_and_lists_come_as_a_schema_says() -> None:
    kinds = {
        "place": (
            {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "int"}]},
            {"options": [{"x": 1}, {"x": 2}]},
        ),
        "tags": ({"type": "array", "items": "string"}, {"options": [["a"], ["b", "c"]]}),
        "notes": ({"type": "map", "values": "int"}, {"length": 2, "keys": {"regex": "k[0-9]{3}"}}),
        "day": ({"type": "int", "logicalType": "date"}, {"range": {"min": 19_000, "max": 19_001}}),
        "at": ({"type": "int", "logicalType": "time-millis"}, {"options": [1500]}),
        "price": (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            {"range": {"min": 10.0, "max": 10.5}},
        ),
        "number": ({"type": "string"}, {"iteration": {"start": 7}}),
        "word": ({"type": "string"}, {"regex": "[^ -Y[-~]{3}"}),
    }
    fields = [{"name": name, "type": kind, "arg.properties": hints} for name, (kind, hints) in kinds.items()]
    avro = {"type": "record", "name": "Row", "fields": fields}
    config = {"kafka.topic": "t", "schema.string": json.dumps(avro), "max.interval": "0", "iterations": "50"}
    rows = [row.value for row in Kit(DatagenConnector, config).poll(50)]
    assert {row["place"]["x"] for row in rows} == {1, 2}
    assert {tuple(row["tags"]) for row in rows} == {("a",), ("b", "c")}
    assert all(len(row["notes"]) == 2 and all(name[0] == "k" for name in row["notes"]) for row in rows)
    assert {row["day"] for row in rows} == {date(2022, 1, 8)}
    assert {row["at"] for row in rows} == {time(0, 0, 1, 500_000)}
    assert all(Decimal(10) <= row["price"] <= Decimal("10.5") for row in rows)
    assert [row["number"] for row in rows] == [str(n) for n in range(7, 57)]
    assert {row["word"] for row in rows} == {"ZZZ"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give one of quickstart"),
        ({"schema.string": "{"}, "no JSON"),
        ({"schema.string": '{"type":"record","name":"r","fields":[]}'}, "needs fields"),
        ({"schema.string": '{"type":"int"}'}, "must be a record"),
        ({"quickstart": "users", "schema.keyfield": "nope"}, "is none of registertime"),
        ({"schema.string": ROW % '"arg.properties": {"options": [{"b": 1}]}'}, "must have the fields a"),
        ({"schema.string": ROW % '"arg.properties": {"options": []}'}, "a list with entries"),
    ],
)
def test_wrong_schemas_are_named(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConnectError, match=message):
        Kit(DatagenConnector, {"kafka.topic": "t", **given})


def test_two_schemas_take_turns() -> None:
    config = {"topic": "t", "num.msgs": "6", "multiple.schema": "true", "partition.count": "3"}
    rows = Kit(SchemaSourceConnector, config).poll(6)
    assert [row.value_schema.version for row in rows if row.value_schema] == [1, 2, 1, 2, 1, 2]
    assert [row.partition for row in rows] == [0, 1, 2, 0, 1, 2]


def test_a_mock_fails_as_it_is_told() -> None:
    kit = Kit(MockSourceConnector, {"mock_mode": "task-failure", "delay_ms": "0"})
    with pytest.raises(ConnectError, match="mock_mode"):
        kit.poll(1)


def test_names_of_java_mean_these_connectors() -> None:
    plugins = Plugins()
    assert plugins.connector("io.confluent.kafka.connect.datagen.DatagenConnector") is DatagenConnector
    for name in ("VerifiableSource", "VerifiableSink", "SchemaSource", "MockSource", "MockSink"):
        assert plugins.connector(f"{TOOLS}.{name}Connector").__name__ == f"{name}Connector"


def test_numbers_pass_through_a_killed_worker_without_a_gap(
    barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    source = {
        "name": "numbers",
        "connector.class": f"{TOOLS}.VerifiableSourceConnector",
        "topic": barnabas_topic,
        "throughput": "500",
    }
    sink = {
        "name": "seen",
        "connector.class": f"{TOOLS}.VerifiableSinkConnector",
        "topics": barnabas_topic,
        "consumer.override.auto.offset.reset": "earliest",
    }
    with running_worker(tmp_path, barnabas_broker.bootstrap, source) as worker:
        until(lambda: any(line.get("committed") and line["seqno"] > 100 for line in worker.lines()))
        worker.kill()
    with running_worker(tmp_path, barnabas_broker.bootstrap, source, sink) as worker:
        told = len(worker.lines())
        until(lambda: any(line.get("flushed") and line["seqno"] > 400 for line in worker.lines()[told:]))
    flushed = [line["seqno"] for line in worker.lines() if line.get("flushed")]
    assert sorted(set(flushed)) == list(range(max(flushed) + 1))
