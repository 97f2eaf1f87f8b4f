"""Records with schemas through v3: schemas given as text, by id, by version, or the latest of a subject."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas.schemas.model import SchemaType
from rest.serving import HTTP, Served, serving
from rest.sources import MemorySource

CUSTOMER = json.dumps(
    {
        "type": "record",
        "name": "Customer",
        "namespace": "shop",
        "fields": [{"name": "id", "type": "int"}, {"name": "mail", "type": ["null", "string"]}],
    }
)
NUMBER = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
PROTO = 'syntax = "proto3"; message Point { int32 x = 1; }'
DATA = {"id": 7, "mail": {"string": "a@b"}}


@pytest.fixture(scope="module")
def source() -> MemorySource:
    return MemorySource()


@pytest.fixture(scope="module")
def schemas(broker: str, source: MemorySource) -> Iterator[Served]:
    with serving(broker, schemas=source) as served:
        yield served


@pytest.fixture
def made(schemas: Served, fresh_name: Any) -> str:
    name: str = fresh_name()
    HTTP.post(f"{schemas.cluster}/topics", json={"topic_name": name, "partitions_count": 1})
    return name


def produced(served: Served, topic: str, **record: Any) -> dict[str, Any]:
    found: dict[str, Any] = HTTP.post(f"{served.cluster}/topics/{topic}/records", json=record).json()
    return found


def last_value(broker: str, topic: str, offset: int) -> Any:
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "none"})
    try:
        consumer.assign([TopicPartition(topic, 0, offset)])
        message = consumer.poll(30)
        assert message is not None
        return message.value()
    finally:
        consumer.close()


def test_a_schema_given_as_text_is_registered(
    broker: str, schemas: Served, source: MemorySource, made: str
) -> None:
    value = {"type": "AVRO", "schema": CUSTOMER, "data": DATA}
    found = produced(schemas, made, value=value)
    schema_id = source.subjects[f"{made}-value"][0]
    assert found["value"] == {
        "type": "AVRO",
        "subject": f"{made}-value",
        "schema_id": schema_id,
        "schema_version": 1,
        "size": 11,
    }
    assert last_value(broker, made, 0) == b"\0" + schema_id.to_bytes(4, "big") + b"\x0e\x02\x06a@b"


@pytest.mark.parametrize(
    ("format", "text", "data"),
    [("JSONSCHEMA", NUMBER, {"n": 5}), ("PROTOBUF", PROTO, {"x": 5}), ("AVRO", '"string"', "text")],
)
def test_schemas_of_all_types(schemas: Served, made: str, format: str, text: str, data: Any) -> None:
    found = produced(schemas, made, key={"type": format, "schema": text, "data": data})
    assert (found["error_code"], found["key"]["type"]) == (200, format)
    assert found["key"]["subject"] == f"{made}-key"


def test_schemas_by_id_version_and_latest(schemas: Served, source: MemorySource, made: str) -> None:
    first = source.put(f"{made}-value", SchemaType.AVRO, CUSTOMER)
    second = source.put(f"{made}-value", SchemaType.AVRO, '"string"')
    by_id = produced(schemas, made, value={"schema_id": first.schema_id, "data": DATA})
    assert (by_id["value"]["type"], by_id["value"]["schema_version"]) == ("AVRO", 1)
    by_version = produced(schemas, made, value={"schema_version": 1, "data": DATA})
    assert by_version["value"]["schema_id"] == first.schema_id
    latest = produced(schemas, made, value={"data": "text"})
    assert (latest["value"]["schema_id"], latest["value"]["schema_version"]) == (second.schema_id, 2)
    by_subject = produced(schemas, made, value={"subject": f"{made}-value", "data": "text"})
    assert by_subject["value"]["schema_id"] == second.schema_id
    of_type = produced(schemas, made, value={"type": "AVRO", "data": "text"})
    assert of_type["value"]["schema_id"] == second.schema_id


def test_subjects_by_the_name_of_the_record(schemas: Served, source: MemorySource, made: str) -> None:
    subjects = {"RECORD_NAME": "shop.Customer", "TOPIC_RECORD_NAME": f"{made}-shop.Customer"}
    for strategy, subject in subjects.items():
        value = {"type": "AVRO", "schema": CUSTOMER, "subject_name_strategy": strategy, "data": DATA}
        assert produced(schemas, made, value=value)["value"]["subject"] == subject


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ({"type": "AVRO", "schema": CUSTOMER, "data": {"id": "seven"}}, 42207),
        ({"type": "AVRO", "schema": CUSTOMER, "data": {"id": 7}}, 42207),
        ({"type": "JSONSCHEMA", "schema": NUMBER, "data": {"n": "x"}}, 42207),
        ({"type": "AVRO", "schema": "{", "data": 5}, 42205),
        ({"type": "PROTOBUF", "schema": "nonsense", "data": {}}, 42205),
        ({"schema_id": 999, "data": 5}, 42205),
        ({"schema_id": 0, "data": 5}, 42205),
        ({"schema_version": 9, "data": 5}, 42205),
        ({"subject": "nobody", "data": 5}, 42205),
        ({"data": 5}, 42205),
    ],
)
def test_data_and_schemas_that_are_refused(
    schemas: Served, made: str, value: dict[str, Any], code: int
) -> None:
    found = produced(schemas, made, value=value)
    assert found["error_code"] == code, found
    assert found["message"].startswith("Unprocessable ")


def test_a_tail_decodes_records_by_the_schemas_that_they_name(
    schemas: Served, source: MemorySource, made: str
) -> None:
    produced(schemas, made, value={"type": "AVRO", "schema": CUSTOMER, "data": DATA})
    for form in ("auto", "avro"):
        url = f"{schemas.url}/topics/{made}/tail?from=beginning&limit=1&format={form}"
        lines = HTTP.get(url).text.splitlines()
        [record] = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
        assert record["value"]["type"] == "AVRO"
        assert record["value"]["data"] == DATA
        assert record["value"]["schema_id"] == source.subjects[f"{made}-value"][0]
