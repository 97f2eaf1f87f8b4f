"""Serializers and deserializers: evolution, the latest version, settings, errors, both faces."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass
from typing import Any

import pytest

from barnabas.schemas import (
    AsyncAvroDeserializer,
    AsyncAvroSerializer,
    AsyncJSONDeserializer,
    AsyncJSONSerializer,
    AsyncProtobufDeserializer,
    AsyncProtobufSerializer,
    AsyncSchemaRegistryClient,
    AvroDeserializer,
    AvroSerializer,
    JSONDeserializer,
    JSONSerializer,
    MessageField,
    ProtobufDeserializer,
    ProtobufSerializer,
    RegistryError,
    Schema,
    SchemaRegistryClient,
    SerializationContext,
    SerializationError,
    qualified_reference_name,
)

from ..avro.test_customer_contact import CAREFUL, FIRST, NAIVE
from .messages import ORDER_2, classes

OLD = {"customer_id": 7, "mail": "a@example.org", "phone": None, "channel": "FAX"}
NEW = {"customer_id": 7, "email_address": "a@example.org", "consent": False, "channel": "OTHER"}


def test_the_contact_of_a_customer_evolves(ours: SchemaRegistryClient, topic: str) -> None:
    """The naive second version is refused with the reason; the careful one reads old data."""
    context = SerializationContext(topic)
    written = AvroSerializer(ours, FIRST)(OLD, context)

    with pytest.raises(
        SerializationError, match=r"READER_FIELD_MISSING_DEFAULT_VALUE.*email_address"
    ) as refused:
        AvroSerializer(ours, NAIVE)(NEW, context)
    assert isinstance(refused.value.__cause__, RegistryError) and refused.value.__cause__.is_incompatible

    assert AvroDeserializer(ours, CAREFUL)(written, context) == NEW
    AvroSerializer(ours, CAREFUL)(NEW, context)  # registers the second version
    assert AvroDeserializer(ours, conf={"use.latest.version": True})(written, context) == NEW
    assert AvroDeserializer(ours)(written, context) == OLD


def test_the_latest_version_is_written_if_asked_for(ours: SchemaRegistryClient, topic: str) -> None:
    context = SerializationContext(topic)
    first = ours.register_schema(f"{topic}-value", Schema('"int"'))
    second = ours.register_schema(f"{topic}-value", Schema('"long"'))

    latest = AvroSerializer(ours, conf={"use.latest.version": True})(5, context)
    chosen = AvroSerializer(ours, conf={"use.schema.id": first.id})(5, context)

    assert latest == b"\x00" + second.id.to_bytes(4, "big") + b"\x0a"
    assert chosen == b"\x00" + first.id.to_bytes(4, "big") + b"\x0a"


def test_the_latest_version_with_metadata(ours: SchemaRegistryClient, topic: str) -> None:
    subject = f"{topic}-value"
    blue = ours.register_schema(subject, Schema('"int"', metadata={"properties": {"app": "blue"}}))
    ours.register_schema(subject, Schema('"long"', metadata={"properties": {"app": "green"}}))

    written = AvroSerializer(ours, conf={"use.latest.with.metadata": {"app": "blue"}})(
        5, SerializationContext(topic)
    )

    assert written == b"\x00" + blue.id.to_bytes(4, "big") + b"\x0a"
    read = AvroDeserializer(ours, conf={"use.latest.with.metadata": {"app": "green"}})
    assert read(written, SerializationContext(topic)) == 5


def test_without_registering_the_schema_must_be_there(ours: SchemaRegistryClient, topic: str) -> None:
    context = SerializationContext(topic, MessageField.KEY)
    serializer = AvroSerializer(ours, '"string"', conf={"auto.register.schemas": False})

    with pytest.raises(
        SerializationError, match=f"the key of a record of topic {topic} cannot be serialized"
    ) as no:
        serializer("x", context)
    assert no.value.__cause__.code == 40401  # type: ignore[union-attr]
    ours.register_schema(f"{topic}-key", Schema('"string"'))
    assert serializer("x", context) is not None


def test_normal_forms_share_an_id(ours: SchemaRegistryClient, topic: str) -> None:
    context = SerializationContext(topic)
    conf = {"normalize.schemas": True}

    one = AvroSerializer(ours, '{"type":"string","b":1,"a":2}', conf=conf)("x", context)
    two = AvroSerializer(ours, '{"type":"string","a":2,"b":1}', conf=conf)("x", context)

    assert one == two


@dataclass
class Contact:
    customer_id: int
    mail: str
    phone: str | None
    channel: str


def test_objects_are_converted(ours: SchemaRegistryClient, topic: str) -> None:
    context = SerializationContext(topic)
    contact = Contact(1, "m", None, "MAIL")

    written = AvroSerializer(ours, FIRST, lambda value, _: asdict(value))(contact, context)

    assert AvroDeserializer(ours, from_dict=lambda data, _: Contact(**data))(written, context) == contact


def test_none_is_a_tombstone(ours: SchemaRegistryClient, topic: str) -> None:
    assert AvroSerializer(ours, FIRST)(None, SerializationContext(topic)) is None
    assert AvroDeserializer(ours)(None, SerializationContext(topic)) is None
    assert f"{topic}-value" not in ours.get_subjects()


def test_values_that_do_not_fit_are_told_with_the_topic(ours: SchemaRegistryClient, topic: str) -> None:
    context = SerializationContext(topic)
    bad: list[tuple[Any, Any, str]] = [
        (AvroSerializer(ours, FIRST), {"customer_id": "x"}, "customer_id"),
        (
            JSONSerializer(ours, '{"type":"object","required":["id"]}'),
            {},
            r"'id' is a required property \(at \$\)",
        ),
        (
            ProtobufSerializer(ours, classes()["Order"]),
            classes()["Line"](),
            "the value is a Line, not a Order",
        ),
    ]
    for number, (serializer, value, reason) in enumerate(bad):
        context = SerializationContext(f"{topic}-{number}")
        with pytest.raises(
            SerializationError, match=f"value of a record of topic {topic}-{number} .*{reason}"
        ):
            serializer(value, context)


def test_strict_records_are_refused_or_taken(ours: SchemaRegistryClient, topic: str) -> None:
    value = {**OLD, "more": 1}
    assert AvroSerializer(ours, FIRST)(value, SerializationContext(topic))
    with pytest.raises(SerializationError, match="more"):
        AvroSerializer(ours, FIRST, conf={"validate.strict": True})(value, SerializationContext(topic))


@pytest.mark.parametrize(
    "data, reason",
    [
        (b"", "it is empty"),
        (b"\x00\x00", "too few for a schema id"),
        (b"plain text", "no serializer with schemas wrote it"),
        (b"\x00\x7f\xff\xff\xff\x00c", "the registry knows no schema with id 2147483647"),
        (b"\x00\xff\xff\xff\xff\x00c", "the registry knows no schema with id 4294967295"),
        (b"\x00\x00\x00\x00\x00\x00c", "the registry knows no schema with id 0: Schema 0 not found"),
        (b"\x01" + b"\x07" * 16 + b"\x00c", "HTTP 404"),
    ],
)
def test_bytes_of_others_are_told_with_the_topic(
    data: bytes, reason: str, ours: SchemaRegistryClient, topic: str
) -> None:
    for deserializer in (AvroDeserializer(ours), JSONDeserializer(ours), ProtobufDeserializer(ours)):
        with pytest.raises(
            SerializationError, match=f"the value of a record of topic {topic} cannot be.*{reason}"
        ):
            deserializer(data, SerializationContext(topic))


def test_truncated_payloads_are_told(ours: SchemaRegistryClient, topic: str) -> None:
    made = classes()
    whole = {
        "a": (AvroSerializer(ours, FIRST), AvroDeserializer(ours), OLD),
        "j": (JSONSerializer(ours, '{"type":"object"}'), JSONDeserializer(ours), {"a": "b"}),
        "p": (ProtobufSerializer(ours, made["Line"]), ProtobufDeserializer(ours), made["Line"](sku="abc")),
    }
    for name, (write, read, value) in whole.items():
        context = SerializationContext(f"{topic}-{name}")
        written = write(value, context)
        assert written is not None
        for end in range(len(written)):
            try:
                read(written[:end], context)
            except SerializationError as error:
                assert f"{topic}-{name}" in str(error)
            else:
                assert name == "p" and end >= 7  # a shorter message of Protobuf may be a message


def test_a_payload_of_another_type_is_told(ours: SchemaRegistryClient, topic: str) -> None:
    context = SerializationContext(topic)
    written = JSONSerializer(ours, '{"type":"object"}')({}, context)

    with pytest.raises(SerializationError, match="its schema is of type JSON"):
        AvroDeserializer(ours)(written, context)


def test_values_are_checked_when_they_are_read(ours: SchemaRegistryClient, topic: str) -> None:
    context = SerializationContext(topic)
    written = JSONSerializer(ours, '{"type":"object"}')({"a": 1}, context)

    with pytest.raises(SerializationError, match="1 is not of type 'string'"):
        JSONDeserializer(ours, '{"type":"object","properties":{"a":{"type":"string"}}}')(written, context)
    lax = JSONDeserializer(ours, '{"properties":{"a":{"type":"string"}}}', conf={"validate": False})
    assert lax(written, context) == {"a": 1}


def test_protobuf_messages_evolve(ours: SchemaRegistryClient, topic: str) -> None:
    context = SerializationContext(topic)
    old, new = classes()["Order"], classes(ORDER_2)["Order"]
    first = ProtobufSerializer(ours, old)(old(id=1), context)
    second = ProtobufSerializer(ours, new)(new(id=2, note="n"), context)

    assert ProtobufDeserializer(ours, new)(first, context).note == ""
    assert ProtobufDeserializer(ours, old)(second, context).id == 2
    assert ProtobufDeserializer(ours)(second, context).note == "n"


def test_imported_files_are_registered_under_the_strategy(ours: SchemaRegistryClient, topic: str) -> None:
    kind = classes()["Order"]
    conf = {"reference.subject.name.strategy": qualified_reference_name}

    ProtobufSerializer(ours, kind, conf)(kind(id=1), SerializationContext(topic))

    [reference] = ours.get_version(f"{topic}-value").schema.references
    assert (reference.name, reference.subject) == ("shop/address.proto", "shop.address")


def test_messages_with_files_that_everybody_knows(ours: SchemaRegistryClient, topic: str) -> None:
    """Written by a client with generated classes; read by the schema alone."""
    text = """syntax = "proto3"; package p; import "google/type/date.proto"; import "confluent/meta.proto";
        import "confluent/type/decimal.proto";
        message Paid {
          google.type.Date on = 1;
          confluent.type.Decimal total = 2 [(confluent.field_meta).doc = "d"];
        }"""
    found = ours.register_schema(f"{topic}-value", Schema(text, "PROTOBUF"))
    payload = bytes.fromhex("0a0308ea0f 12080a0201f410041802")
    data = b"\x00" + found.id.to_bytes(4, "big") + b"\x00" + payload

    read = ProtobufDeserializer(ours)(data, SerializationContext(topic))

    assert (read.on.year, read.total.value, read.total.scale) == (2026, b"\x01\xf4", 2)


def test_messages_of_old_clients_are_read_on_request(ours: SchemaRegistryClient, topic: str) -> None:
    context = SerializationContext(topic)
    kind = classes()["Line"]
    written = ProtobufSerializer(ours, kind)(kind(sku="a"), context)
    assert written is not None and written[5:8] == b"\x04\x02\x00"
    old = written[:5] + b"\x02\x01\x00" + written[8:]  # plain varints

    assert ProtobufDeserializer(ours, conf={"use.deprecated.format": True})(old, context).sku == "a"
    with pytest.raises(SerializationError):
        ProtobufDeserializer(ours)(old, context)


def test_a_strategy_without_a_topic_says_what_it_needs(ours: SchemaRegistryClient) -> None:
    with pytest.raises(SerializationError, match="needs a topic"):
        AvroSerializer(ours, FIRST)(OLD)
    assert AvroSerializer(ours, FIRST, conf={"subject.name.strategy": "RECORD"})(OLD)


def test_a_subject_is_asked_for_once(
    ours: SchemaRegistryClient, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    serializer, deserializer = AvroSerializer(ours, FIRST), AvroDeserializer(ours)
    context = SerializationContext(topic)
    written = serializer(OLD, context)
    deserializer(written, context)

    async def refuse(*_: Any) -> None:
        raise AssertionError("the registry was asked again")

    monkeypatch.setattr(ours.core._caller, "call", refuse)
    assert deserializer(serializer(OLD, context), context) == OLD


def test_the_asynchronous_face_writes_the_same_bytes(
    ours: SchemaRegistryClient, registry_url: str, topic: str
) -> None:
    kind = classes()["Line"]
    schema = json.dumps({"type": "object"})

    async def work() -> None:
        async with AsyncSchemaRegistryClient(registry_url) as client:
            cases: list[tuple[Any, Any, Any, Any]] = [
                (
                    AvroSerializer(ours, FIRST),
                    AsyncAvroSerializer(client, FIRST),
                    AsyncAvroDeserializer(client),
                    OLD,
                ),
                (
                    JSONSerializer(ours, schema),
                    AsyncJSONSerializer(client, schema),
                    AsyncJSONDeserializer(client),
                    {"a": 1},
                ),
                (
                    ProtobufSerializer(ours, kind),
                    AsyncProtobufSerializer(client, kind),
                    AsyncProtobufDeserializer(client, kind),
                    kind(sku="x"),
                ),
            ]
            for number, (blocking, write, read, value) in enumerate(cases):
                context = SerializationContext(f"{topic}-{number}")
                written = await write(value, context)
                assert written == await asyncio.to_thread(blocking, value, context)
                assert await read(written, context) == value
                assert await read.deserialize(f"{topic}-{number}", written) == value
                assert await write.serialize(f"{topic}-{number}", value) == written

    asyncio.run(work())
