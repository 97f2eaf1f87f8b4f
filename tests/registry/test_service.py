"""The registry as a service over a broker: Confluent's serializers send data, and a restart loses nothing."""

from __future__ import annotations

import json

import httpx
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from registry.running import running

CONTACT = {
    "type": "record",
    "name": "CustomerContact",
    "namespace": "shop",
    "fields": [{"name": "name", "type": "string"}, {"name": "mail", "type": "string"}],
}
NAIVE = {**CONTACT, "fields": [{"name": "fullName", "type": "string"}, {"name": "phone", "type": "string"}]}
EVOLVED = {
    **CONTACT,
    "fields": [
        {"name": "fullName", "type": "string", "aliases": ["name"]},
        {"name": "phone", "type": "string", "default": "unknown"},
    ],
}


def test_data_is_written_read_and_evolves_across_a_restart(broker: str, topic: str) -> None:
    settings = {
        "kafkastore.bootstrap.servers": broker,
        "kafkastore.topic": f"_{topic}",
        "schema.registry.group.id": topic,
        "kafkastore.timeout.ms": "10000",
    }
    value = SerializationContext(topic, MessageField.VALUE)
    subject = f"{topic}-value"
    with running(given=settings) as url, SchemaRegistryClient({"url": url}) as client:
        write = AvroSerializer(client, json.dumps(CONTACT))
        producer = Producer({"bootstrap.servers": broker})
        producer.produce(topic, write({"name": "Ada", "mail": "ada@example.org"}, value))
        assert producer.flush(30) == 0
        naive = httpx.post(f"{url}/subjects/{subject}/versions", json={"schema": json.dumps(NAIVE)})
        assert (naive.status_code, naive.json()["error_code"]) == (409, 40901)
        assert "READER_FIELD_MISSING_DEFAULT_VALUE" in naive.json()["message"]
        assert client.register_schema(subject, Schema(json.dumps(EVOLVED), "AVRO")) == 2
        before = httpx.get(f"{url}/schemas?deleted=true").json()
        ids = httpx.get(f"{url}/v1/metadata/id").json()["scope"]["clusters"]
        assert ids["schema-registry-cluster"] == topic and ids["kafka-cluster"]
    with running(given=settings) as url, SchemaRegistryClient({"url": url}) as client:
        assert httpx.get(f"{url}/schemas?deleted=true").json() == before
        read = AvroDeserializer(client, json.dumps(EVOLVED))
        consumer = Consumer(
            {"bootstrap.servers": broker, "group.id": f"{topic}-readers", "auto.offset.reset": "earliest"}
        )
        try:
            consumer.subscribe([topic])
            message = consumer.poll(30)
            assert message is not None and message.error() is None
            assert read(message.value(), value) == {"fullName": "Ada", "phone": "unknown"}
        finally:
            consumer.close()
        assert client.register_schema("another", Schema('"string"', "AVRO")) == 3
