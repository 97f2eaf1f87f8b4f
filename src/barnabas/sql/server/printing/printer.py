"""PRINT: the records of a topic as lines of text.

In: a cluster, the statement, a registry or None. Out: lines, in the order in which records come, with a line
for the formats of keys and of values before the first record and whenever they are known better. A slow
reader holds up the fetches. Does not know: HTTP.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import AsyncIterator
from typing import Any

from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.consumer import Consumer, ConsumerSettings, OnOutOfRange
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import NoTopic
from barnabas.client.core.fetching import ConsumerRecord
from barnabas.client.core.topology import TopicPartition
from barnabas.schemas.client.errors import RegistryError
from barnabas.schemas.client.faces import AsyncSchemaRegistryClient
from barnabas.schemas.serdes.deserializers import (
    AsyncAvroDeserializer,
    AsyncDeserializer,
    AsyncJSONDeserializer,
    AsyncProtobufDeserializer,
)
from barnabas.sql.errors import SqlError, did_you_mean
from barnabas.sql.server.printing.guessing import PREFIX_BYTES, Guess
from barnabas.sql.syntax.statements import Print

POLL_MS = 500.0
READING = ConsumerSettings(
    fetch_bytes_max=4 << 20, partition_fetch_bytes_max=1 << 20, on_out_of_range=OnOutOfRange.EARLIEST
)
NAMES = {"AVRO": "AVRO", "JSON": "JSON_SR", "PROTOBUF": "PROTOBUF"}


class Registered:
    """Values with a schema id, as text. Ids that the registry does not know are no such values."""

    def __init__(self, registry: AsyncSchemaRegistryClient | None) -> None:
        self._registry = registry
        self._deserializers: dict[str, AsyncDeserializer] = {}

    async def shown(self, topic: str, data: bytes) -> tuple[str, str] | None:
        """The format and the text; None for bytes that are no value of a registry."""
        if self._registry is None:
            return None
        try:
            found = await self._registry.get_schema(int.from_bytes(data[1:PREFIX_BYTES], "big"))
            kind = found.schema.schema_type
            value = await self._deserializer(kind).deserialize(topic, data)
        except (RegistryError, ValueError, KeyError):
            return None
        return NAMES[kind], json.dumps(value, default=json_default, ensure_ascii=False)

    def _deserializer(self, kind: str) -> AsyncDeserializer:
        found = self._deserializers.get(kind)
        if found is None:
            registry = self._registry
            assert registry is not None
            match kind:
                case "AVRO":
                    found = AsyncAvroDeserializer(registry)
                case "JSON":
                    found = AsyncJSONDeserializer(registry)
                case _:
                    found = AsyncProtobufDeserializer(registry)
            self._deserializers[kind] = found
        return found


async def printed(
    cluster: ClusterCore, statement: Print, registry: AsyncSchemaRegistryClient | None
) -> AsyncIterator[str]:
    """Lines without their ends. SqlError for a topic that does not exist."""
    places = await places_of(cluster, statement.topic)
    consumer = Consumer(cluster, READING)
    lines = Lines(places[0].topic, Registered(registry))
    seen = shown = 0
    try:
        await consumer.assign_at(
            places, OffsetSpec.EARLIEST if statement.from_beginning else OffsetSpec.LATEST
        )
        while True:
            for record in await consumer.poll(POLL_MS):
                seen += 1
                if (seen - 1) % (statement.interval or 1):
                    continue
                for line in await lines.of(record):
                    yield line
                shown += 1
                if shown == statement.limit:
                    return
    finally:
        await consumer.close()


async def places_of(cluster: ClusterCore, topic: str) -> list[TopicPartition]:
    """The partitions of a topic. A name without quotes is in capitals by now: it also means the one topic
    that has it in other letters."""
    try:
        found = (await cluster.topics([topic]))[topic]
    except NoTopic:
        known = [name for name in await cluster.topics(None) if not name.startswith("_")]
        alike = [name for name in known if name.upper() == topic]
        if len(alike) == 1:
            return await places_of(cluster, alike[0])
        raise SqlError(
            f"Could not find topic '{topic}', or the KSQL user does not have permissions to list the topic."
            f"{did_you_mean(topic, known)} Topic names are case-sensitive."
        ) from None
    return [TopicPartition(topic, index) for index in range(found.partition_count)]


class Lines:
    def __init__(self, topic: str, registered: Registered) -> None:
        self._topic = topic
        self._registered = registered
        self._key, self._value = Guess(is_key=True), Guess(is_key=False)
        self._told = ("", "")

    async def of(self, record: ConsumerRecord) -> list[str]:
        key = await self._shown(self._key, record.key)
        value = await self._shown(self._value, record.value)
        known = (f"Key format: {self._key}", f"Value format: {self._value}")
        told = [line for line, before in zip(known, self._told, strict=True) if line != before]
        self._told = known
        time = dt.datetime.fromtimestamp(record.timestamp / 1000, dt.UTC)
        return [
            *told,
            f"rowtime: {time:%Y/%m/%d %H:%M:%S}.{record.timestamp % 1000:03d} Z, key: {key}, value: {value}, "
            f"partition: {record.partition}",
        ]

    async def _shown(self, guess: Guess, data: bytes | None) -> str:
        if data is not None and guess.has_schema_id(data):
            found = await self._registered.shown(self._topic, data)
            if found is not None:
                return guess.show_registered(*found)
        return guess.show(data)


def json_default(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else str(value)
