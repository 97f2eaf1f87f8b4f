"""Serializers as Kafka clients call them, blocking and for asyncio.

In: values, with a context (confluent-kafka), a topic (kafka-python), or bound to a topic (aiokafka). Out:
bytes. Does not know: how values are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.schemas.client.faces import AsyncSchemaRegistryClient, SchemaRegistryClient, run
from barnabas.schemas.client.values import Schema
from barnabas.schemas.serdes.context import Context, MessageField, SerializationContext
from barnabas.schemas.serdes.kafka_python import as_kafka_python_serializer
from barnabas.schemas.serdes.writing import ProtobufWriter, ToDict, Writer, avro_writer, json_writer

Conf = Mapping[str, Any] | None


class _Base:
    """`field` says whether keys or values are written where the caller does not."""

    def __init__(self, writer: Writer, to_dict: ToDict | None, is_key: bool) -> None:
        self._writer = writer
        self._to_dict = to_dict
        self._field = MessageField.KEY if is_key else MessageField.VALUE

    def _context(self, topic: str | None, headers: Any = None) -> SerializationContext:
        return SerializationContext(topic, self._field, headers)

    def _plain(self, value: Any, context: Context) -> Any:
        return value if self._to_dict is None else self._to_dict(value, context)


class BlockingSerializer(_Base):
    def __call__(self, value: Any, ctx: Context | None = None) -> bytes | None:
        """Serialize with a context, as confluent-kafka's producers do; None stays None (a tombstone)."""
        if value is None:
            return None
        context = ctx if ctx is not None else self._context(None)
        return run(self._writer.write(self._plain(value, context), context))

    def serialize(self, topic: str, *rest: Any) -> bytes | None:
        """Serialize for a topic, as kafka-python calls it: `(topic, headers, value)` or `(topic, value)`."""
        value, headers = rest[-1], rest[0] if len(rest) == 2 else None
        return self(value, self._context(topic, headers))

    def for_topic(self, topic: str) -> Callable[[Any], bytes | None]:
        """A function of the value alone, for clients that do not tell the topic, as aiokafka."""
        return lambda value: self(value, self._context(topic))

    def for_kafka_python(self) -> Any:
        """The same as an instance of kafka-python's own class, which its version 3 asks for."""
        return as_kafka_python_serializer(self)

    def close(self) -> None:
        """Nothing to close: the client belongs to the caller."""


class AsyncSerializer(_Base):
    async def __call__(self, value: Any, ctx: Context | None = None) -> bytes | None:
        if value is None:
            return None
        context = ctx if ctx is not None else self._context(None)
        return await self._writer.write(self._plain(value, context), context)

    async def serialize(self, topic: str, value: Any, headers: Any = None) -> bytes | None:
        return await self(value, self._context(topic, headers))


class AvroSerializer(BlockingSerializer):
    """Avro. `schema` is a text, or a Schema with references; `to_dict(value, context)` makes dicts."""

    def __init__(
        self,
        client: SchemaRegistryClient,
        schema: str | Schema | None = None,
        to_dict: ToDict | None = None,
        conf: Conf = None,
        *,
        is_key: bool = False,
    ) -> None:
        super().__init__(avro_writer(client.core, schema, conf), to_dict, is_key)


class JSONSerializer(BlockingSerializer):
    """JSON checked by a JSON Schema. `dumps` encodes; by default compact, in UTF-8."""

    def __init__(
        self,
        client: SchemaRegistryClient,
        schema: str | Schema | None = None,
        to_dict: ToDict | None = None,
        conf: Conf = None,
        *,
        dumps: Callable[[Any], str | bytes] | None = None,
        is_key: bool = False,
    ) -> None:
        super().__init__(json_writer(client.core, schema, conf, dumps), to_dict, is_key)


class ProtobufSerializer(BlockingSerializer):
    """Protobuf messages of one generated class."""

    def __init__(
        self, client: SchemaRegistryClient, message_type: Any, conf: Conf = None, *, is_key: bool = False
    ) -> None:
        super().__init__(ProtobufWriter(client.core, message_type, conf), None, is_key)


class AsyncAvroSerializer(AsyncSerializer):
    def __init__(
        self,
        client: AsyncSchemaRegistryClient,
        schema: str | Schema | None = None,
        to_dict: ToDict | None = None,
        conf: Conf = None,
        *,
        is_key: bool = False,
    ) -> None:
        super().__init__(avro_writer(client.core, schema, conf), to_dict, is_key)


class AsyncJSONSerializer(AsyncSerializer):
    def __init__(
        self,
        client: AsyncSchemaRegistryClient,
        schema: str | Schema | None = None,
        to_dict: ToDict | None = None,
        conf: Conf = None,
        *,
        dumps: Callable[[Any], str | bytes] | None = None,
        is_key: bool = False,
    ) -> None:
        super().__init__(json_writer(client.core, schema, conf, dumps), to_dict, is_key)


class AsyncProtobufSerializer(AsyncSerializer):
    def __init__(
        self, client: AsyncSchemaRegistryClient, message_type: Any, conf: Conf = None, *, is_key: bool = False
    ) -> None:
        super().__init__(ProtobufWriter(client.core, message_type, conf), None, is_key)
