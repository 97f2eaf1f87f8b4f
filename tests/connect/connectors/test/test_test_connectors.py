"""Datagen, verifiable, schema and mock connectors; the first two through a worker in a process of its own."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give one of quickstart"),
        ({"schema.string": "{"}, "no JSON"),
        ({"schema.string": '{"type":"record","name":"r","fields":[]}'}, "needs fields"),
        ({"schema.string": '{"type":"int"}'}, "must be a record"),
        ({"quickstart": "users", "schema.keyfield": "nope"}, "is none of registertime"),
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
