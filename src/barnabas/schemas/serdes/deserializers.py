"""Deserializers as Kafka clients call them, blocking and for asyncio.

In: bytes, with a context (confluent-kafka), a topic (kafka-python), or alone (aiokafka). Out: values.
Does not know: how payloads are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.schemas.client.faces import AsyncSchemaRegistryClient, SchemaRegistryClient, run
from barnabas.schemas.client.values import Schema
from barnabas.schemas.serdes.context import Context, MessageField, SerializationContext
from barnabas.schemas.serdes.kafka_python import as_kafka_python_deserializer
from barnabas.schemas.serdes.reading import AvroReader, JsonReader, ProtobufReader, Reader

Conf = Mapping[str, Any] | None
FromDict = Callable[[Any, Any], Any]


class _Base:
    def __init__(self, reader: Reader, from_dict: FromDict | None, is_key: bool) -> None:
        self._reader = reader
        self._from_dict = from_dict
        self._field = MessageField.KEY if is_key else MessageField.VALUE

    def _context(self, topic: str | None, headers: Any = None) -> SerializationContext:
        return SerializationContext(topic, self._field, headers)

    def _object(self, value: Any, context: Context) -> Any:
        return value if self._from_dict is None else self._from_dict(value, context)


class BlockingDeserializer(_Base):
    def __call__(self, data: bytes | None, ctx: Context | None = None) -> Any:
        """Deserialize with a context, as confluent-kafka's consumers do; None stays None."""
        if data is None:
            return None
        context = ctx if ctx is not None else self._context(None)
        return self._object(run(self._reader.read(data, context)), context)

    def deserialize(self, topic: str, *rest: Any) -> Any:
        """Deserialize for a topic, as kafka-python calls it: `(topic, headers, data)` or `(topic, data)`."""
        data, headers = rest[-1], rest[0] if len(rest) == 2 else None
        return self(data, self._context(topic, headers))

    def for_topic(self, topic: str) -> Callable[[bytes | None], Any]:
        """A function of the bytes alone that knows the topic, for subjects and for messages of errors."""
        return lambda data: self(data, self._context(topic))

    def for_kafka_python(self) -> Any:
        """The same as an instance of kafka-python's own class, which its version 3 asks for."""
        return as_kafka_python_deserializer(self)

    def close(self) -> None:
        """Nothing to close: the client belongs to the caller."""


class AsyncDeserializer(_Base):
    async def __call__(self, data: bytes | None, ctx: Context | None = None) -> Any:
        if data is None:
            return None
        context = ctx if ctx is not None else self._context(None)
        return self._object(await self._reader.read(data, context), context)

    async def deserialize(self, topic: str, data: bytes | None, headers: Any = None) -> Any:
        return await self(data, self._context(topic, headers))


class AvroDeserializer(BlockingDeserializer):
    """Avro, read into `schema` if it is given: fields are renamed by aliases and filled by defaults.

    `return_record_name` gives records of unions as pairs of name and record.
    """

    def __init__(
        self,
        client: SchemaRegistryClient,
        schema: str | Schema | None = None,
        from_dict: FromDict | None = None,
        conf: Conf = None,
        *,
        return_record_name: bool = False,
        is_key: bool = False,
    ) -> None:
        super().__init__(AvroReader(client.core, schema, conf, return_record_name), from_dict, is_key)


class JSONDeserializer(BlockingDeserializer):
    """JSON, checked by `schema` if it is given, else by the schema that it was written with."""

    def __init__(
        self,
        client: SchemaRegistryClient,
        schema: str | Schema | None = None,
        from_dict: FromDict | None = None,
        conf: Conf = None,
        *,
        is_key: bool = False,
    ) -> None:
        super().__init__(JsonReader(client.core, schema, conf), from_dict, is_key)


class ProtobufDeserializer(BlockingDeserializer):
    """Protobuf. Without a message class, messages get classes made from the schemas that they name."""

    def __init__(
        self,
        client: SchemaRegistryClient,
        message_type: Any | None = None,
        conf: Conf = None,
        *,
        is_key: bool = False,
    ) -> None:
        super().__init__(ProtobufReader(client.core, message_type, conf), None, is_key)


class AsyncAvroDeserializer(AsyncDeserializer):
    def __init__(
        self,
        client: AsyncSchemaRegistryClient,
        schema: str | Schema | None = None,
        from_dict: FromDict | None = None,
        conf: Conf = None,
        *,
        return_record_name: bool = False,
        is_key: bool = False,
    ) -> None:
        super().__init__(AvroReader(client.core, schema, conf, return_record_name), from_dict, is_key)


class AsyncJSONDeserializer(AsyncDeserializer):
    def __init__(
        self,
        client: AsyncSchemaRegistryClient,
        schema: str | Schema | None = None,
        from_dict: FromDict | None = None,
        conf: Conf = None,
        *,
        is_key: bool = False,
    ) -> None:
        super().__init__(JsonReader(client.core, schema, conf), from_dict, is_key)


class AsyncProtobufDeserializer(AsyncDeserializer):
    def __init__(
        self,
        client: AsyncSchemaRegistryClient,
        message_type: Any | None = None,
        conf: Conf = None,
        *,
        is_key: bool = False,
    ) -> None:
        super().__init__(ProtobufReader(client.core, message_type, conf), None, is_key)
