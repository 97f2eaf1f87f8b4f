"""Records produced by API v2: every format, the order of results, and every code of a refusal."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import TopicPartition

from barnabas.rest.formats.errors import RegistryFailure
from barnabas.schemas.model import SchemaType
from rest.sources import MemorySource
from rest.v2.calling import Api, embedded, refusal

AVRO = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "int"]}]})
JSON = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}})


def stored(broker: str, topic: str, partition: int, count: int) -> list[tuple[Any, Any]]:
    """Keys and values, read by another client."""
    consumer = ConfluentConsumer({"bootstrap.servers": broker, "group.id": "test"})
    consumer.assign([TopicPartition(topic, partition, 0)])
    found = []
    while len(found) < count:
        message = consumer.poll(10)
        assert message is not None and message.error() is None
        found.append((message.key(), message.value()))
    consumer.close()
    return found


def written(partition: int, offset: int) -> dict[str, Any]:
    return {"partition": partition, "offset": offset, "error_code": None, "error": None}


def test_results_come_in_the_order_of_the_records(api: Api, broker: str, topic: str) -> None:
    records = [{"value": str(index), "partition": index % 2} for index in range(6)]
    response = api.produce(topic, *records)
    assert response.status_code == 200
    assert response.json() == {
        "offsets": [written(index % 2, index // 2) for index in range(6)],
        "key_schema_id": None,
        "value_schema_id": None,
    }
    assert stored(broker, topic, 1, 3) == [(None, b'"1"'), (None, b'"3"'), (None, b'"5"')]


def test_binary_and_json_data_are_stored_as_they_are(api: Api, broker: str, topic: str) -> None:
    binary = {"key": base64.b64encode(b"\x00k").decode(), "value": base64.b64encode(b"\xff").decode()}
    path = f"/topics/{topic}/partitions/0"
    for content in (embedded("binary"), "application/vnd.kafka.v2+json"):
        assert api.post(path, {"records": [binary]}, content=content).status_code == 200
    data = [{"key": {"a": 1}, "value": [1, "ž", None]}, {"value": None}, {"key": None, "value": {}}]
    assert api.post(path, {"records": data}, content=embedded("json")).status_code == 200
    assert stored(broker, topic, 0, 5) == [
        (b"\x00k", b"\xff"),
        (b"\x00k", b"\xff"),
        (b'{"a":1}', '[1,"ž",null]'.encode()),
        (None, None),
        (None, b"{}"),
    ]


def test_a_key_decides_on_the_partition_as_in_kafkas_clients(api: Api, topic: str) -> None:
    first = api.produce(topic, *({"key": str(index), "value": 1} for index in range(20))).json()["offsets"]
    again = api.produce(topic, *({"key": str(index), "value": 1} for index in range(20))).json()["offsets"]
    assert [each["partition"] for each in first] == [each["partition"] for each in again]
    assert {each["partition"] for each in first} == {0, 1}


def test_schemas_are_registered_once_and_then_named_by_id(
    api: Api, broker: str, topic: str, source: MemorySource
) -> None:
    first = api.produce(
        topic,
        {"key": 1, "value": {"a": {"int": 1}}, "partition": 0},
        data="avro",
        key_schema='"int"',
        value_schema=AVRO,
    ).json()
    assert source.subjects[f"{topic}-key"] == [first["key_schema_id"]]
    assert source.subjects[f"{topic}-value"] == [first["value_schema_id"]]
    second = api.produce(
        topic,
        {"key": 2, "value": {"a": None}, "partition": 0},
        data="avro",
        key_schema_id=first["key_schema_id"],
        value_schema_id=first["value_schema_id"],
    ).json()
    assert second["value_schema_id"] == first["value_schema_id"]
    key, value = ((0).to_bytes() + first[f"{each}_schema_id"].to_bytes(4) for each in ("key", "value"))
    assert stored(broker, topic, 0, 2) == [
        (key + b"\x02", value + b"\x02\x02"),
        (key + b"\x04", value + b"\x00"),
    ]


def test_a_schema_that_is_given_counts_even_if_all_data_are_null(
    api: Api, broker: str, topic: str, source: MemorySource
) -> None:
    record = {"key": None, "value": None, "partition": 0}
    first = api.produce(topic, record, data="avro", key_schema='"int"', value_schema=AVRO).json()
    assert source.subjects[f"{topic}-key"] == [first["key_schema_id"]]
    assert source.subjects[f"{topic}-value"] == [first["value_schema_id"]]
    second = api.produce(topic, record, data="avro", value_schema_id=first["value_schema_id"]).json()
    assert (second["key_schema_id"], second["value_schema_id"]) == (None, first["value_schema_id"])
    assert stored(broker, topic, 0, 2) == [(None, None)] * 2


def test_json_schema_data_are_checked_and_stored(api: Api, broker: str, topic: str) -> None:
    records = [{"value": {"a": 1}, "partition": 0}]
    answer = api.produce(topic, *records, data="jsonschema", value_schema=JSON).json()
    prefix = (0).to_bytes() + answer["value_schema_id"].to_bytes(4)
    assert stored(broker, topic, 0, 1) == [(None, prefix + b'{"a":1}')]
    refused = api.produce(topic, {"value": {"a": "x"}}, data="jsonschema", value_schema=JSON)
    assert refusal(refused) == (400, 400)
    assert "record 0" in refused.json()["message"] and "#/a" in refused.json()["message"]


REFUSALS: list[tuple[str, dict[str, Any], tuple[int, int]]] = [
    ("binary", {"records": [{"value": "not base64!"}]}, (400, 400)),
    ("binary", {"records": [{"value": 7}]}, (400, 400)),
    ("json", {"records": []}, (422, 422)),
    ("json", {}, (422, 422)),
    ("json", {"records": {}}, (422, 422)),
    ("json", {"records": ["x"]}, (422, 422)),
    ("json", {"records": [{"value": 1, "colour": 2}]}, (422, 422)),
    ("json", {"records": [{"value": 1}], "colour": 2}, (422, 422)),
    ("json", {"records": [{"value": 1, "partition": 9}]}, (404, 40402)),
    ("json", {"records": [{"value": 1, "partition": -1}]}, (404, 40402)),
    ("json", {"records": [{"value": 1, "partition": "x"}]}, (422, 422)),
    ("json", {"records": [{"value": 1, "partition": True}]}, (422, 422)),
    ("json", {"records": [{"value": 1, "partition": []}]}, (422, 422)),
    ("avro", {"records": [{"key": 1}], "value_schema": '"int"'}, (422, 42201)),
    ("avro", {"records": [{"value": 1}], "key_schema": '"int"'}, (422, 42202)),
    ("avro", {"records": [{"value": 1}], "value_schema": ""}, (422, 422)),
    ("avro", {"records": [{"value": "x"}], "value_schema": '"int"'}, (400, 400)),
    ("avro", {"records": [{"value": 1}], "value_schema": '{"type": "recrod"}'}, (422, 42205)),
    ("avro", {"records": [{"value": 1}], "value_schema_id": 4_000}, (422, 42207)),
    ("avro", {"records": [{"value": 1}], "value_schema_id": 0}, (422, 42207)),
    ("avro", {"records": [{"value": 1}], "value_schema_id": "1"}, (422, 422)),
    ("avro", {"records": [{"value": None}], "value_schema_id": 4_000}, (422, 42207)),
    ("avro", {"records": [{"value": None}], "value_schema": "{{"}, (422, 42205)),
]


@pytest.mark.parametrize(("data", "body", "expected"), REFUSALS, ids=str)
def test_requests_that_are_refused(
    api: Api, topic: str, data: str, body: dict[str, Any], expected: tuple[int, int]
) -> None:
    assert refusal(api.post(f"/topics/{topic}", body, content=embedded(data))) == expected
    for partition in range(2):
        offsets = api.get(f"/topics/{topic}/partitions/{partition}/offsets").json()
        assert offsets["end_offset"] == 0


def test_a_request_with_one_bad_record_writes_none(api: Api, topic: str) -> None:
    response = api.produce(
        topic, {"value": "AAAA", "partition": 0}, {"value": "!", "partition": 0}, data="binary"
    )
    assert refusal(response) == (400, 400)
    assert "value of record 1" in response.json()["message"]
    assert api.get(f"/topics/{topic}/partitions/0/offsets").json()["end_offset"] == 0


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"NaN", b'{"records": [' + b"[" * 9_000, b"\xff"])
def test_bodies_that_are_no_json(api: Api, topic: str, body: bytes) -> None:
    response = api.post(f"/topics/{topic}", body, content=embedded("json"))
    assert refusal(response) in ((400, 400), (422, 422))


def test_a_partition_in_the_path_lets_none_in_the_records(api: Api, topic: str) -> None:
    path = f"/topics/{topic}/partitions/0"
    body = {"records": [{"value": 1, "partition": 0}]}
    assert refusal(api.post(path, body, content=embedded("json"))) == (422, 422)
    body = {"records": [{"value": 1}]}
    assert refusal(api.post(f"/topics/{topic}/partitions/9", body, content=embedded("json"))) == (404, 40402)
    assert refusal(api.post("/topics/a%20b", body, content=embedded("json"))) == (404, 40403)


def test_a_registry_that_fails_is_told(api: Api, topic: str, source: MemorySource, monkeypatch: Any) -> None:
    async def fail(*_: Any) -> Any:
        raise RegistryFailure("The schema registry cannot be reached.")

    monkeypatch.setattr(source, "register", fail)
    monkeypatch.setattr(source, "by_id", fail)
    for schema in ({"value_schema": '"long"'}, {"value_schema_id": 3_999}):
        assert refusal(api.produce(topic, {"value": 1}, data="avro", **schema)) == (408, 40801)


def test_records_that_are_too_large_fail_alone(api: Api, topic: str) -> None:
    response = api.produce(topic, {"value": "small"}, {"value": "x" * 2_000_000}, {"value": "small"})
    assert response.status_code == 200
    codes = [each["error_code"] for each in response.json()["offsets"]]
    assert codes == [None, 50002, None]
    failed = response.json()["offsets"][1]
    assert (failed["partition"], failed["offset"]) == (None, None)
    assert "max.request.size" in failed["error"]


def test_a_schema_of_another_type_is_refused(api: Api, topic: str, source: MemorySource) -> None:
    known = source.put("other", SchemaType.JSON, JSON)
    response = api.produce(topic, {"value": 1}, data="avro", value_schema_id=known.schema_id)
    assert refusal(response) == (422, 42205)
