"""Our serializers and confluent-kafka's write the same bytes, read each other's, and share a registry."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import (
    SchemaReference,
    header_schema_id_serializer,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer as TheirJSONDeserializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer as TheirJSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirProtobufDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas.schemas import (
    AvroDeserializer,
    AvroSerializer,
    JSONDeserializer,
    JSONSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    Reference,
    Schema,
    SchemaRegistryClient,
)

from .messages import classes

RECORD = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "tags", "type": {"type": "map", "values": "int"}, "default": {}},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        ],
    }
)
VALUE = {"id": 2**40, "note": "é", "tags": {"x": -1}, "kind": "B"}
AVRO = {
    "record": (RECORD, VALUE),
    "string": ('"string"', "grüße"),
    "bytes": ('"bytes"', b"\x00\xff"),
    "null": ('"null"', None),
    "union": ('["null", "long"]', 7),
    "array": ('{"type": "array", "items": "double"}', [1.5, -2.0]),
    "fixed": ('{"type": "fixed", "name": "F", "size": 2}', b"ab"),
}
JSON_SCHEMA = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Customer",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
        "required": ["id"],
        "additionalProperties": False,
    }
)


def contexts(topic: str) -> list[Any]:
    return [SerializationContext(topic, field) for field in (MessageField.VALUE, MessageField.KEY)]


@pytest.mark.parametrize("label", [label for label in AVRO if label != "null"])
def test_avro(label: str, ours: SchemaRegistryClient, theirs: Any, topic: str) -> None:
    text, value = AVRO[label]
    for context in contexts(topic):
        mine = AvroSerializer(ours, text)(value, context)
        other = TheirAvroSerializer(theirs, text)(value, context)

        assert mine == other and mine is not None
        assert AvroDeserializer(ours)(other, context) == value
        assert TheirAvroDeserializer(theirs)(mine, context) == value


def test_json(ours: SchemaRegistryClient, theirs: Any, topic: str) -> None:
    value = {"id": 1, "name": "é\n"}
    for context in contexts(topic):
        mine = JSONSerializer(ours, JSON_SCHEMA)(value, context)
        other = TheirJSONSerializer(JSON_SCHEMA, theirs)(value, context)

        assert mine == other and mine is not None
        assert JSONDeserializer(ours)(other, context) == value
        assert TheirJSONDeserializer(JSON_SCHEMA, schema_registry_client=theirs)(mine, context) == value


@pytest.mark.parametrize("name", ["Order", "Customer", "Line"])
def test_protobuf(name: str, ours: SchemaRegistryClient, theirs: Any, topic: str) -> None:
    """Messages at the top of a file, later in it and nested, with an imported file and a known one."""
    made = classes()
    messages = {
        "Customer": made["Customer"](name="x", home=made["Address"](street="s")),
        "Line": made["Line"](sku="a", count=3),
        "Order": made["Order"](id=7, lines=[made["Line"](sku="a")]),
    }
    value, kind = messages[name], made[name]
    for context in contexts(topic):
        mine = ProtobufSerializer(ours, kind)(value, context)
        other = TheirProtobufSerializer(kind, theirs)(value, context)

        assert mine == other and mine is not None
        assert ProtobufDeserializer(ours, kind)(other, context) == value
        assert TheirProtobufDeserializer(kind, schema_registry_client=theirs)(mine, context) == value
        found = ProtobufDeserializer(ours)(other, context)  # by the schema alone
        assert found.SerializeToString() == value.SerializeToString()
        assert found.DESCRIPTOR.full_name == kind.DESCRIPTOR.full_name


def test_headers_hold_the_guid(ours: SchemaRegistryClient, theirs: Any, topic: str) -> None:
    made = classes()
    message = made["Line"](sku="a")
    cases: list[tuple[Any, Any, Any, Any, Any]] = [
        (
            AvroSerializer(ours, RECORD, conf={"schema.id.location": "header"}),
            TheirAvroSerializer(theirs, RECORD, conf={"schema.id.serializer": header_schema_id_serializer}),
            AvroDeserializer(ours),
            TheirAvroDeserializer(theirs),
            VALUE,
        ),
        (
            ProtobufSerializer(ours, made["Line"], {"schema.id.serializer": header_schema_id_serializer}),
            TheirProtobufSerializer(
                made["Line"], theirs, {"schema.id.serializer": header_schema_id_serializer}
            ),
            ProtobufDeserializer(ours, made["Line"]),
            TheirProtobufDeserializer(made["Line"], schema_registry_client=theirs),
            message,
        ),
    ]
    for number, (mine, other, read, their_read, value) in enumerate(cases):
        for field in (MessageField.KEY, MessageField.VALUE):
            first = SerializationContext(f"{topic}-{number}", field, [])
            second = SerializationContext(f"{topic}-{number}", field, [])

            assert mine(value, first) == other(value, second)
            assert first.headers == second.headers
            [(name, prefix)] = first.headers
            assert name == f"__{field}_schema_id" and prefix[0] == 1
            assert read(other(value, second), second) == value
            assert their_read(mine(value, first), first) == value


def test_the_guid_may_be_the_prefix(ours: SchemaRegistryClient, theirs: Any, topic: str) -> None:
    [context, _] = contexts(topic)
    written = AvroSerializer(ours, RECORD, conf={"schema.id.location": "prefix.guid"})(VALUE, context)

    assert written is not None and written[0] == 1
    assert AvroDeserializer(ours)(written, context) == VALUE
    assert TheirAvroDeserializer(theirs)(written, context) == VALUE


def test_references_between_avro_schemas(ours: SchemaRegistryClient, theirs: Any, topic: str) -> None:
    address = '{"type":"record","name":"a.Address","fields":[{"name":"street","type":"string"}]}'
    customer = '{"type":"record","name":"a.Customer","fields":[{"name":"home","type":"a.Address"}]}'
    ours.register_schema("a.Address", Schema(address))
    reference = Reference("a.Address", "a.Address", 1)
    value = {"home": {"street": "s"}}
    [context, _] = contexts(topic)

    mine = AvroSerializer(ours, Schema(customer, references=(reference,)))(value, context)
    their_schema = TheirSchema(customer, "AVRO", [SchemaReference("a.Address", "a.Address", 1)])
    other = TheirAvroSerializer(theirs, their_schema)(value, context)

    assert mine == other
    assert AvroDeserializer(ours)(mine, context) == value
    assert TheirAvroDeserializer(theirs)(mine, context) == value


def test_references_between_json_schemas(ours: SchemaRegistryClient, theirs: Any, topic: str) -> None:
    address = '{"type":"object","properties":{"street":{"type":"string"}},"required":["street"]}'
    customer = '{"type":"object","properties":{"home":{"$ref":"address.json"}}}'
    ours.register_schema("address", Schema(address, "JSON"))
    schema = Schema(customer, "JSON", (Reference("address.json", "address", 1),))
    their_schema = TheirSchema(customer, "JSON", [SchemaReference("address.json", "address", 1)])
    value = {"home": {"street": "s"}}
    [context, _] = contexts(topic)

    mine = JSONSerializer(ours, schema)(value, context)

    assert mine == TheirJSONSerializer(their_schema, theirs)(value, context)
    assert JSONDeserializer(ours)(mine, context) == value
    with pytest.raises(ValueError, match=r"'street' is a required property"):
        JSONSerializer(ours, schema)({"home": {}}, context)


@pytest.mark.parametrize(
    "word, strategy",
    [("RECORD", record_subject_name_strategy), ("TOPIC_RECORD", topic_record_subject_name_strategy)],
)
def test_strategies_give_the_same_subjects(
    word: str, strategy: Any, ours: SchemaRegistryClient, theirs: Any, topic: str
) -> None:
    made = classes()
    conf = {"subject.name.strategy": word}
    their_conf = {"subject.name.strategy": strategy}
    for context in contexts(topic):
        for mine, other, value in (
            (
                AvroSerializer(ours, RECORD, conf=conf),
                TheirAvroSerializer(theirs, RECORD, conf=their_conf),
                VALUE,
            ),
            (
                JSONSerializer(ours, JSON_SCHEMA, conf=conf),
                TheirJSONSerializer(JSON_SCHEMA, theirs, conf=their_conf),
                {"id": 1},
            ),
            (
                ProtobufSerializer(ours, made["Line"], conf),
                TheirProtobufSerializer(made["Line"], theirs, their_conf),
                made["Line"](sku="x"),
            ),
        ):
            assert mine(value, context) == other(value, context)
    prefix = f"{topic}-" if word == "TOPIC_RECORD" else ""
    subjects = ours.get_subjects()
    assert {f"{prefix}shop.Order", f"{prefix}Customer", f"{prefix}shop.Order.Line"} <= set(subjects)
