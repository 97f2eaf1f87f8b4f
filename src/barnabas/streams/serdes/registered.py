"""Formats whose schemas a registry keeps: Avro, JSON Schema, Protobuf, in Confluent's wire format.

In: the registry's address and settings, a schema, perhaps a class of the values. Out: serdes for the edges of
a topology and for its stores; subjects follow from topics, also from changelogs, as in Kafka Streams. A serde
is a value: it travels to executors, and each process has one client of a registry. Does not know: how schemas
are compared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal

from barnabas.plans.serdes import FromBytes, RegistryAway, ToBytes
from barnabas.plans.type_variables import T
from barnabas.schemas.client.errors import RegistryError
from barnabas.schemas.client.faces import SchemaRegistryClient
from barnabas.schemas.deriving import avro_schema_of, json_schema_of, json_value, object_of, plain
from barnabas.schemas.serdes.context import SerializationError
from barnabas.schemas.serdes.deserializers import AvroDeserializer, JSONDeserializer, ProtobufDeserializer
from barnabas.schemas.serdes.serializers import AvroSerializer, JSONSerializer, ProtobufSerializer

Registry = str | Mapping[str, Any]  # a URL, or settings under Confluent's names
LATEST = {"auto.register.schemas": False, "use.latest.version": True}
Pairs = tuple[tuple[str, Any], ...]


def avro(
    registry: Registry,
    schema: str | None = None,
    *,
    of: type[T] | None = None,
    conf: Mapping[str, Any] | None = None,
) -> RegisteredSerde[T]:
    """Avro. `of`: a dataclass or pydantic model; otherwise values are dicts. `schema` is registered when the
    first value is written. Without one it is derived from `of`; without both, and with the setting
    `use.latest.version`, values are written with the latest version of the subject."""
    return _serde("avro", registry, schema, of, conf)


def json_schema(
    registry: Registry,
    schema: str | None = None,
    *,
    of: type[T] | None = None,
    conf: Mapping[str, Any] | None = None,
) -> RegisteredSerde[T]:
    """JSON checked by a JSON Schema; the rest is as in `avro`."""
    return _serde("json schema", registry, schema, of, conf)


def protobuf(
    registry: Registry, message: type[T], *, conf: Mapping[str, Any] | None = None
) -> RegisteredSerde[T]:
    """Protobuf messages of one generated class."""
    return _serde("protobuf", registry, None, message, conf)


def _serde(
    form: Literal["avro", "json schema", "protobuf"],
    registry: Registry,
    schema: str | None,
    of: Any,
    conf: Mapping[str, Any] | None,
) -> RegisteredSerde:
    address = {"url": registry} if isinstance(registry, str) else registry
    if form != "protobuf" and of is not None and not (_is_dataclass(of) or hasattr(of, "model_validate")):
        raise TypeError(f"{of!r} is neither a dataclass nor a pydantic model")
    is_derived = form != "protobuf" and schema is None and of is not None
    is_derived = is_derived and not (conf or {}).get("use.latest.version")
    if is_derived:
        schema = avro_schema_of(of) if form == "avro" else json_schema_of(of)
    default = LATEST if schema is None and form != "protobuf" else {}
    pairs = tuple(sorted({**default, **(conf or {})}.items()))
    return RegisteredSerde(form, tuple(sorted(address.items())), schema, of, pairs, is_derived)


def _is_dataclass(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


@dataclasses.dataclass(frozen=True)
class RegisteredSerde(Generic[T]):
    """`registry` may hold a password, so it is not in the repr."""

    format: str
    registry: Pairs = dataclasses.field(repr=False)
    schema: str | None = None
    of: Any = None
    conf: Pairs = ()
    is_derived: bool = False  # the schema, from the class: values are checked and made by its types

    def serializer(self, topic: str, is_key: bool) -> Callable[[T], bytes]:
        client, conf = client_of(self.registry), dict(self.conf)
        if self.format == "protobuf":
            return _bytes_of(ProtobufSerializer(client, self.of, conf, is_key=is_key).for_topic(topic))
        to_dict = None if self.of is None else (lambda value, context: self._plain(value))
        if self.format == "avro":
            written = AvroSerializer(client, self.schema, to_dict, conf, is_key=is_key).for_topic(topic)
        else:
            written = JSONSerializer(client, self.schema, to_dict, conf, is_key=is_key).for_topic(topic)
        return _bytes_of(written)

    def deserializer(self, topic: str, is_key: bool) -> Callable[[bytes], T]:
        client = client_of(self.registry)
        if self.format == "protobuf":
            return _reader(ProtobufDeserializer(client, self.of, is_key=is_key).for_topic(topic))
        from_dict = None if self.of is None else (lambda value, context: self._object(value))
        if self.format == "avro":
            return _reader(AvroDeserializer(client, self.schema, from_dict, is_key=is_key).for_topic(topic))
        return _reader(JSONDeserializer(client, self.schema, from_dict, is_key=is_key).for_topic(topic))

    def _plain(self, value: Any) -> Any:
        if self.is_derived and self.format == "json schema":
            return json_value(self.of, value)
        return plain(value) if self.is_derived else as_dict(value)

    def _object(self, value: Any) -> Any:
        if self.is_derived:
            return object_of(self.of, value)
        if not isinstance(value, Mapping):
            return value
        if hasattr(self.of, "model_validate"):
            return self.of.model_validate(value)
        names = {field.name for field in dataclasses.fields(self.of)}
        return self.of(**{name: each for name, each in value.items() if name in names})


def _bytes_of(write: Any) -> ToBytes:
    def to_bytes(value: Any) -> bytes:
        try:
            data: bytes = write(value)
        except SerializationError as error:
            _raise_if_away(error)
            raise
        return data

    return to_bytes


def _reader(read: FromBytes) -> FromBytes:
    def from_bytes(data: bytes) -> Any:
        try:
            return read(data)
        except SerializationError as error:
            _raise_if_away(error)
            raise

    return from_bytes


def _raise_if_away(error: SerializationError) -> None:
    """Tell a registry that does not answer from one that refuses: no record is judged by the first."""
    cause = error.__cause__
    if isinstance(cause, RegistryError) and cause.is_away:
        raise RegistryAway(f"the schema registry does not answer: {cause}") from error


def as_dict(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value.model_dump() if hasattr(value, "model_dump") else value


_clients: dict[Pairs, SchemaRegistryClient] = {}


def client_of(registry: Pairs) -> SchemaRegistryClient:
    """The client of this process for a registry; it keeps schemas that it has seen."""
    found = _clients.get(registry)
    if found is None:
        found = _clients[registry] = SchemaRegistryClient(dict(registry))
    return found


def close_clients() -> None:
    """Close the clients of this process."""
    while _clients:
        _clients.popitem()[1].close()
