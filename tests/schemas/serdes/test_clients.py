"""Records with schemas through confluent-kafka, kafka-python and aiokafka, a broker and a registry on it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.schemas import (
    AvroDeserializer,
    AvroSerializer,
    JSONDeserializer,
    JSONSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    SchemaRegistryClient,
)
from both_brokers import KEEPS_ALL
from schemas.served import registry_on

from ..avro.test_customer_contact import CAREFUL, FIRST
from .messages import classes
from .test_serdes import NEW, OLD

_topics = (f"records-{number}" for number in itertools.count())
WAIT_S = 30


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "apache":
        yield request.getfixturevalue("apache_kafka").bootstrap
        return
    from barnabas.testing import Broker

    with Broker(overrides={"group.initial.rebalance.delay.ms": 0, **KEEPS_ALL}) as started:
        yield started.bootstrap


@pytest.fixture(scope="module")
def client(broker: str) -> Iterator[SchemaRegistryClient]:
    with registry_on(broker, "_schemas") as url, SchemaRegistryClient(url) as found:
        yield found


@pytest.fixture
def topic() -> str:
    return next(_topics)


def test_confluent_kafka(broker: str, client: SchemaRegistryClient, topic: str) -> None:
    from confluent_kafka import DeserializingConsumer, SerializingProducer

    producer = SerializingProducer(
        {
            "bootstrap.servers": broker,
            "key.serializer": AvroSerializer(client, '"string"'),
            "value.serializer": AvroSerializer(client, FIRST, conf={"schema.id.location": "header"}),
        }
    )
    producer.produce(topic, key="k", value=OLD, headers=[("mine", b"1")])
    producer.produce(topic, key="k", value=None)
    assert producer.flush(WAIT_S) == 0

    consumer = DeserializingConsumer(
        {
            "bootstrap.servers": broker,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "key.deserializer": AvroDeserializer(client),
            "value.deserializer": AvroDeserializer(client, CAREFUL),
        }
    )
    consumer.subscribe([topic])
    try:
        found = [polled(consumer) for _ in range(2)]
    finally:
        consumer.close()

    assert [(record.key(), record.value()) for record in found] == [("k", NEW), ("k", None)]
    assert [name for name, _ in found[0].headers()] == ["mine", "__value_schema_id"]
    assert {f"{topic}-key", f"{topic}-value"} <= set(client.get_subjects())


def polled(consumer: Any) -> Any:
    record = consumer.poll(WAIT_S)
    assert record is not None and record.error() is None
    return record


def test_kafka_python(broker: str, client: SchemaRegistryClient, topic: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    kind = classes()["Order"]
    producer = KafkaProducer(
        bootstrap_servers=broker,
        key_serializer=JSONSerializer(client, '{"type":"string"}', is_key=True).for_kafka_python(),
        value_serializer=ProtobufSerializer(client, kind).for_kafka_python(),
    )
    try:
        producer.send(topic, key="k", value=kind(id=7)).get(WAIT_S)
    finally:
        producer.close()

    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=broker,
        auto_offset_reset="earliest",
        consumer_timeout_ms=WAIT_S * 1000,
        key_deserializer=JSONDeserializer(client, is_key=True).for_kafka_python(),
        value_deserializer=ProtobufDeserializer(client).for_kafka_python(),
    )
    try:
        record = next(consumer)
    finally:
        consumer.close()

    assert (record.key, record.value.id) == ("k", 7)
    assert {f"{topic}-key", f"{topic}-value", "shop/address.proto"} <= set(client.get_subjects())


def test_aiokafka(broker: str, client: SchemaRegistryClient, topic: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def work() -> Any:
        producer = AIOKafkaProducer(
            bootstrap_servers=broker,
            key_serializer=AvroSerializer(client, '"long"', is_key=True).for_topic(topic),
            value_serializer=AvroSerializer(client, FIRST).for_topic(topic),
        )
        async with producer:
            await producer.send_and_wait(topic, key=5, value=OLD)
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=broker,
            auto_offset_reset="earliest",
            key_deserializer=AvroDeserializer(client, is_key=True),
            value_deserializer=AvroDeserializer(client, CAREFUL).for_topic(topic),
        )
        async with consumer:
            return await asyncio.wait_for(consumer.getone(), WAIT_S)

    record = asyncio.run(work())

    assert (record.key, record.value) == (5, NEW)
    assert {f"{topic}-key", f"{topic}-value"} <= set(client.get_subjects())
