"""The proxy over a registry: Confluent's serializers read its records and write records for it; other clients
of HTTP use it; its settings count."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pool, message_factory

from barnabas.services.settings.loading import load_settings
from barnabas.settings import SettingsError
from registry.running import instant
from registry.running import running as running_registry
from rest.running import running
from rest.v2.calling import V2, Api, embedded, refusal

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "raw", "type": "bytes"},
        ],
    }
)
PROTO = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order {
  int64 id = 1;
  repeated string tags = 2;
  google.protobuf.Timestamp at = 3;
  oneof kind { string note = 4; Line line = 5; }
  message Line { int32 count = 1; }
}
"""
JSON_SCHEMA = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
    }
)


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    with running_registry(instant) as url:
        yield url


@pytest.fixture(scope="module")
def url(broker: str, registry: str) -> Iterator[str]:
    given = {
        "bootstrap.servers": f"PLAINTEXT://{broker}",
        "schema.registry.url": registry,
        "consumer.heartbeat.interval.ms": "100",
        "consumer.auto.offset.reset": "earliest",
    }
    with running(given) as found:
        yield found


@pytest.fixture
def api(url: str) -> Api:
    return Api(url)


@pytest.fixture
def client(registry: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry}) as found:
        yield found


@pytest.fixture
def name(fresh_name: Callable[[], str]) -> str:
    return fresh_name()


def stored(broker: str, topic: str) -> bytes:
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "test"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(20)
    assert message is not None and message.error() is None
    consumer.close()
    value = message.value()
    assert isinstance(value, bytes)
    return value


def written(api: Api, topic: str, data: str, value: Any, **schema: Any) -> dict[str, Any]:
    response = api.produce(topic, {"value": value, "partition": 0}, data=data, **schema)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    assert body["offsets"][0]["error"] is None
    return body


def read_back(api: Api, topic: str, data: str) -> Any:
    response = api.post(f"/consumers/{topic}", {"format": data})
    mine = Api(response.json()["base_uri"])
    mine.post("/subscription", {"topics": [topic]})
    (record,) = mine.read(1, data)
    assert mine.delete("").status_code == 204
    return record["value"]


def context(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def test_avro(api: Api, broker: str, name: str, client: SchemaRegistryClient) -> None:
    value = {"id": 7, "note": {"string": "x"}, "raw": "\u00ff\u0000"}
    answer = written(api, name, "avro", value, value_schema=AVRO)
    assert client.get_latest_version(f"{name}-value").schema_id == answer["value_schema_id"]
    theirs = AvroDeserializer(client)(stored(broker, name), context(name))
    assert theirs == {"id": 7, "note": "x", "raw": b"\xff\x00"}
    assert read_back(api, name, "avro") == value
    by_id = written(api, name, "avro", value, value_schema_id=answer["value_schema_id"])
    assert by_id["value_schema_id"] == answer["value_schema_id"]


def test_json_schema(api: Api, broker: str, name: str, client: SchemaRegistryClient) -> None:
    written(api, name, "jsonschema", {"id": 7}, value_schema=JSON_SCHEMA)
    theirs = JSONDeserializer(None, schema_registry_client=client)(stored(broker, name), context(name))
    assert theirs == {"id": 7}
    assert read_back(api, name, "jsonschema") == {"id": 7}
    refused = api.produce(name, {"value": {"id": "x"}}, data="jsonschema", value_schema=JSON_SCHEMA)
    assert refusal(refused) == (400, 400)


def test_protobuf(api: Api, broker: str, name: str, client: SchemaRegistryClient) -> None:
    value = {"id": "7", "tags": ["a"], "at": "2024-01-31T12:00:00Z", "line": {"count": 3}}
    answer = written(api, name, "protobuf", value, value_schema=PROTO)
    assert answer["value_schema_id"] > 0
    kind = order_class(client, f"{name}-value")
    theirs = ProtobufDeserializer(kind, {"use.deprecated.format": False})(stored(broker, name), context(name))
    assert (theirs.id, list(theirs.tags), theirs.line.count) == (7, ["a"], 3)
    assert read_back(api, name, "protobuf") == value
    refused = api.produce(name, {"value": {"nothing": 1}}, data="protobuf", value_schema=PROTO)
    assert refusal(refused) == (400, 400)


def order_class(client: SchemaRegistryClient, subject: str) -> Any:
    """The message class, out of the descriptor that the registry has."""
    import base64

    from google.protobuf import timestamp_pb2
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    latest = client.get_latest_version(subject, fmt="serialized")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    file = FileDescriptorProto.FromString(base64.b64decode(latest.schema.schema_str))
    file.name = "order.proto"
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_records_of_confluents_serializers_are_read(
    api: Api, broker: str, name: str, client: SchemaRegistryClient
) -> None:
    client.register_schema(f"{name}-p-value", Schema(PROTO, "PROTOBUF"))
    kind = order_class(client, f"{name}-p-value")
    message = kind(id=1, note="x")
    payloads = {
        "avro": AvroSerializer(client, AVRO)(
            {"id": 1, "note": None, "raw": b"\xff"}, context(f"{name}-avro")
        ),
        "jsonschema": JSONSerializer(JSON_SCHEMA, client)({"id": 1}, context(f"{name}-jsonschema")),
        "protobuf": ProtobufSerializer(kind, client, {"use.deprecated.format": False})(
            message, context(f"{name}-protobuf")
        ),
    }
    expected = {
        "avro": {"id": 1, "note": None, "raw": "\u00ff"},
        "jsonschema": {"id": 1},
        "protobuf": {"id": "1", "tags": [], "note": "x"},
    }
    producer = Producer({"bootstrap.servers": broker})
    for data, payload in payloads.items():
        producer.produce(f"{name}-{data}", payload)
    assert producer.flush(20) == 0
    for data, value in expected.items():
        assert read_back(api, f"{name}-{data}", data) == value


def test_schemas_with_references(api: Api, name: str, client: SchemaRegistryClient) -> None:
    other = json.dumps({"type": "enum", "name": "shop.Colour", "symbols": ["RED"]})
    client.register_schema(f"{name}-colour", Schema(other, "AVRO"))
    record = {"type": "record", "name": "Car", "fields": [{"name": "c", "type": "shop.Colour"}]}
    reference = SchemaReference("shop.Colour", f"{name}-colour", 1)
    schema_id = client.register_schema(f"{name}-value", Schema(json.dumps(record), "AVRO", [reference]))
    written(api, name, "avro", {"c": "RED"}, value_schema_id=schema_id)
    assert read_back(api, name, "avro") == {"c": "RED"}


def test_what_the_registry_refuses(api: Api, name: str) -> None:
    written(api, name, "avro", 1, value_schema='"int"')
    incompatible = api.produce(name, {"value": "x"}, data="avro", value_schema='"string"')
    assert refusal(incompatible) == (408, 40801)
    assert "incompatible" in incompatible.json()["message"]
    invalid = api.produce(name, {"value": 1}, data="avro", value_schema='{"type": "nothing"}')
    assert refusal(invalid) == (422, 42205)
    unknown = api.produce(name, {"value": 1}, data="avro", value_schema_id=123_456)
    assert refusal(unknown) == (422, 42207)


def test_a_registry_that_is_not_there(broker: str, name: str) -> None:
    given = {"bootstrap.servers": broker, "schema.registry.url": "http://127.0.0.1:1"}
    with running(given) as url:
        response = Api(url).produce(name, {"value": 1}, data="avro", value_schema='"int"')
        assert refusal(response) == (408, 40801)
        assert Api(url).produce(name, {"value": 1}, data="json").status_code == 200


def test_requests_and_curl(url: str, name: str) -> None:
    headers = {"Content-Type": embedded("json"), "Accept": V2}
    answer = requests.post(
        f"{url}/topics/{name}", json={"records": [{"value": 1}]}, headers=headers, timeout=20
    )
    assert answer.status_code == 200 and answer.json()["offsets"][0]["offset"] == 0
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not installed")
    body = json.dumps({"name": "mine", "format": "json", "auto.offset.reset": "earliest"})
    common = [curl, "-s", "-H", f"Content-Type: {V2}"]
    made = subprocess.run(
        [*common, "-X", "POST", "-d", body, f"{url}/consumers/{name}"], capture_output=True, timeout=20
    )
    base = json.loads(made.stdout)["base_uri"]
    where = json.dumps({"partitions": [{"topic": name, "partition": 0}]})
    subprocess.run([*common, "-X", "POST", "-d", where, f"{base}/assignments"], check=True, timeout=20)
    read = [curl, "-s", "-H", f"Accept: {embedded('json')}", f"{base}/records?timeout=5000"]
    records = json.loads(subprocess.run(read, capture_output=True, timeout=20).stdout)
    assert [each["value"] for each in records] == [1]
    offsets = [*common, "-X", "GET", "-d", where, f"{base}/offsets"]  # a GET with a body
    assert json.loads(subprocess.run(offsets, capture_output=True, timeout=20).stdout) == {"offsets": []}
    subprocess.run([curl, "-s", "-X", "DELETE", base], check=True, timeout=20)


def test_apis_that_are_switched_off_are_not_there(broker: str) -> None:
    given = {"bootstrap.servers": broker, "api.v2.enable": "false", "schema.registry.url": ""}
    with running(given) as url:
        assert requests.get(f"{url}/topics", timeout=20).status_code == 404
        assert requests.get(f"{url}/v3/clusters", timeout=20).status_code == 200
    given = {"bootstrap.servers": broker, "api.v3.enable": "false", "schema.registry.url": ""}
    with running(given) as url:
        assert requests.get(f"{url}/topics", timeout=20).status_code == 200
        assert requests.get(f"{url}/v3/clusters", timeout=20).status_code == 404


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bootstrap.servers", "nowhere"),
        ("producer.acks", "some"),
        ("producer.linger.ms", "soon"),
        ("consumer.isolation.level", "high"),
        ("client.security.protocol", "TELEPATHY"),
        ("schema.registry.url", "ftp://x"),
    ],
)
def test_settings_that_are_wrong_are_named(name: str, value: str) -> None:
    from barnabas.rest.application.from_settings import service
    from barnabas.security.errors import SecuritySettingsError

    settings = load_settings("rest", None, {"bootstrap.servers": "localhost:9092", name: value})
    with pytest.raises(
        (SettingsError, SecuritySettingsError), match=name.removeprefix("producer.").split(".")[-1]
    ):
        service(settings)
