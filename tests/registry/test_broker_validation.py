"""A broker that checks ids of schemas asks the registry, and accepts what Confluent's serializers write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    header_schema_id_serializer,
    topic_record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import timestamp_pb2

from barnabas.testing import Broker
from registry.running import instant, running

AVRO = '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"x","type":"string"}]}'
JSON = '{"title":"Order","type":"object","properties":{"x":{"type":"string"}}}'
STRATEGY = "io.confluent.kafka.serializers.subject."
Send = Callable[..., str]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(instant) as found:
        yield found


@pytest.fixture(scope="module")
def checking(url: str) -> Iterator[Broker]:
    with Broker(overrides={"confluent.schema.registry.url": url}) as checking:
        yield checking


@pytest.fixture
def registry(url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": url}) as found:
        yield found


@pytest.fixture
def send(checking: Broker) -> Send:
    producer = Producer({"bootstrap.servers": checking.bootstrap, "linger.ms": 0})

    def sent(topic: str, value: bytes, headers: Any = None) -> str:
        """NO_ERROR, or the name of the error that the producer is told."""
        found: list[str] = []
        producer.produce(
            topic,
            value,
            headers=headers,
            on_delivery=lambda error, _: found.append(error.name() if error else "NO_ERROR"),
        )
        assert producer.flush(60) == 0
        return found[0]

    return sent


def checked(checking: Broker, topic: str, strategy: str = "TopicNameStrategy") -> None:
    checking.create_topic(
        topic,
        configs={
            "confluent.value.schema.validation": "true",
            "confluent.value.subject.name.strategy": STRATEGY + strategy,
        },
    )


def test_values_of_all_types_are_accepted(
    checking: Broker, registry: SchemaRegistryClient, send: Send
) -> None:
    serializers = {
        "avro": (AvroSerializer(registry, AVRO), {"x": "y"}),
        "json": (JSONSerializer(JSON, registry), {"x": "y"}),
        "protobuf": (
            ProtobufSerializer(timestamp_pb2.Timestamp, registry),
            timestamp_pb2.Timestamp(seconds=1),
        ),
    }
    for topic, (serializer, value) in serializers.items():
        checked(checking, topic)
        assert send(topic, serializer(value, SerializationContext(topic, MessageField.VALUE))) == "NO_ERROR"
        assert send(topic, b'{"x":"y"}') == "INVALID_RECORD"
    checked(checking, "stranger")
    foreign = serializers["avro"][0]({"x": "y"}, SerializationContext("avro", MessageField.VALUE))
    assert send("stranger", foreign) == "INVALID_RECORD"


def test_values_named_by_topic_and_record_are_accepted(
    checking: Broker, registry: SchemaRegistryClient, send: Send
) -> None:
    checked(checking, "both", "TopicRecordNameStrategy")
    context = SerializationContext("both", MessageField.VALUE)
    strategy = {"subject.name.strategy": topic_record_subject_name_strategy}
    assert send("both", AvroSerializer(registry, AVRO, conf=strategy)({"x": "y"}, context)) == "NO_ERROR"
    other = AVRO.replace('"x"', '"named_by_topic"')
    value = AvroSerializer(registry, other)({"named_by_topic": "y"}, context)
    assert send("both", value) == "INVALID_RECORD"


def test_ids_in_headers_are_accepted(checking: Broker, registry: SchemaRegistryClient, send: Send) -> None:
    checked(checking, "headers")
    headers: list[tuple[str, bytes]] = []
    context = SerializationContext("headers", MessageField.VALUE, headers)
    serializer = AvroSerializer(registry, AVRO, conf={"schema.id.serializer": header_schema_id_serializer})
    value = serializer({"x": "y"}, context)
    assert headers, "the serializer wrote a header"
    assert send("headers", value, headers) == "NO_ERROR"
    assert send("headers", value) == "INVALID_RECORD"
