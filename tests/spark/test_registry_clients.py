"""Columns and Confluent's own Python serializers, with the real registry: each reads what the other wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas.spark.formats.formats import Codec, format_of
from barnabas.spark.formats.registry import client_of
from schemas.serdes.messages import ORDER_2, classes
from schemas.served import instant_registry


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with instant_registry() as found:
        yield found
        client_of((("url", found),)).close()


@pytest.fixture
def client(url: str) -> Iterator[SchemaRegistryClient]:
    found = SchemaRegistryClient({"url": url})
    yield found
    found._rest_client.session.close()


def codec(url: str, name: str, topic: str = "orders", **options: str) -> Codec:
    given = {"value.format": name, "schema.registry.url": url, "subscribe": topic}
    found = format_of(
        {**given, **{each.replace("__", "."): value for each, value in options.items()}}, "value"
    )
    assert found is not None
    return found.codec()


def test_avro_with_evolution(url: str, client: Any) -> None:
    old = {"type": "record", "name": "Avro", "fields": [{"name": "id", "type": "long"}]}
    fields = [
        {"name": "number", "type": "long", "aliases": ["id"]},
        {"name": "note", "type": "string", "default": "-"},
    ]
    new = {"type": "record", "name": "Avro", "fields": fields}
    context = SerializationContext("avros", MessageField.VALUE)
    before = AvroSerializer(client, json.dumps(old))({"id": 7}, context)
    after = AvroSerializer(client, json.dumps(new))({"number": 8, "note": "x"}, context)
    found = codec(url, "avro", "avros")
    assert found.ddl == "struct<`number`: bigint, `note`: string>"
    assert found.decode(before) == {"number": 7, "note": "-"}
    assert found.decode(after) == {"number": 8, "note": "x"}
    written = found.encode({"number": 9, "note": "y"})
    assert AvroDeserializer(client)(written, context) == {"number": 9, "note": "y"}


def test_json(url: str, client: Any) -> None:
    schema = {
        "title": "Person",
        "type": "object",
        "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
        "additionalProperties": False,
    }
    context = SerializationContext("people", MessageField.VALUE)
    data = JSONSerializer(json.dumps(schema), client)({"name": "Ada", "tags": ["a"]}, context)
    found = codec(url, "registry", "people")
    assert found.decode(data) == {"name": "Ada", "tags": ["a"]}
    written = found.encode({"name": "Grace", "tags": None})
    read = JSONDeserializer(json.dumps(schema), schema_registry_client=client)(written, context)
    assert read == {"name": "Grace"}


def test_protobuf_that_the_client_registers_as_a_descriptor(url: str, client: Any) -> None:
    conf = {"use.deprecated.format": False}
    context = SerializationContext("shop", MessageField.VALUE)
    old, new = classes(), classes(ORDER_2)
    before = old["Order"](id=5, lines=[old["Line"](sku="x", count=2)])
    after = new["Order"](id=6, note="n")
    written = [
        ProtobufSerializer(kind["Order"], client, conf)(message, context)
        for kind, message in ((old, before), (new, after))
    ]
    found = codec(url, "protobuf", "shop", value__message="shop.Order")
    read = [found.decode(each) for each in written]
    assert [(each["id"], each["note"], each["lines"]) for each in read] == [
        (5, "", [{"sku": "x", "count": 2}]),
        (6, "n", []),
    ]
    again = found.encode({**read[0], "note": "again"})
    theirs = ProtobufDeserializer(new["Order"], conf, client)(again, context)
    assert theirs == new["Order"](id=5, note="again", lines=[new["Line"](sku="x", count=2)])


def test_the_text_and_the_descriptor_of_a_file_are_one_schema_when_normalized(url: str, client: Any) -> None:
    from confluent_kafka.schema_registry.common.protobuf import _schema_to_str
    from google.type import interval_pb2

    text = Path(interval_pb2.__file__).with_name("interval.proto").read_text()
    sent = Schema(_schema_to_str(interval_pb2.DESCRIPTOR), "PROTOBUF")
    first = client.register_schema("interval", sent, normalize_schemas=True)
    assert client.register_schema("interval", Schema(text, "PROTOBUF"), normalize_schemas=True) == first
