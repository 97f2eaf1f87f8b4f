"""Schemas: parsed, printed and compared; clients of a registry; serializers and deserializers."""

from barnabas.schemas.client.errors import RegistryError
from barnabas.schemas.client.faces import AsyncSchemaRegistryClient, SchemaRegistryClient
from barnabas.schemas.client.values import RegisteredSchema, Schema, Verdict
from barnabas.schemas.model import Reference
from barnabas.schemas.serdes.context import MessageField, SerializationContext, SerializationError
from barnabas.schemas.serdes.deserializers import (
    AsyncAvroDeserializer,
    AsyncJSONDeserializer,
    AsyncProtobufDeserializer,
    AvroDeserializer,
    JSONDeserializer,
    ProtobufDeserializer,
)
from barnabas.schemas.serdes.serializers import (
    AsyncAvroSerializer,
    AsyncJSONSerializer,
    AsyncProtobufSerializer,
    AvroSerializer,
    JSONSerializer,
    ProtobufSerializer,
)
from barnabas.schemas.serdes.subjects import (
    qualified_reference_name,
    record_name,
    reference_name,
    topic_name,
    topic_record_name,
)

__all__ = [
    "AsyncAvroDeserializer",
    "AsyncAvroSerializer",
    "AsyncJSONDeserializer",
    "AsyncJSONSerializer",
    "AsyncProtobufDeserializer",
    "AsyncProtobufSerializer",
    "AsyncSchemaRegistryClient",
    "AvroDeserializer",
    "AvroSerializer",
    "JSONDeserializer",
    "JSONSerializer",
    "MessageField",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "Reference",
    "RegisteredSchema",
    "RegistryError",
    "Schema",
    "SchemaRegistryClient",
    "SerializationContext",
    "SerializationError",
    "Verdict",
    "qualified_reference_name",
    "record_name",
    "reference_name",
    "topic_name",
    "topic_record_name",
]
