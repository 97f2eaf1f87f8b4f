"""The three types of registered schemas: their columns, and payloads without prefix, decoded and encoded.

In: a schema with its references. Out: its column type in Spark's words; values of a payload of another
version, as this version has them: Avro resolves schemas, Protobuf matches fields by number, JSON by name.
Does not know: registries, prefixes.
"""

from __future__ import annotations

import decimal
import io
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.schemas.client.values import Schema
from barnabas.schemas.model import ResolvedReference
from barnabas.schemas.serdes.framing import SchemaId
from barnabas.spark.formats.avro import ddl_of
from barnabas.spark.formats.ddl import parse_columns
from barnabas.spark.formats.json_schema import ddl_of_json_schema
from barnabas.spark.formats.plain_formats import from_json, to_json
from barnabas.spark.formats.protobuf import fill, struct_of, value_of

if TYPE_CHECKING:
    from barnabas.schemas.protobuf.parsing import ProtobufSchema

References = Sequence[ResolvedReference]


class RegisteredType(Protocol):
    """A version of a schema, which reads payloads of other versions and writes its own."""

    @property
    def ddl(self) -> str: ...

    def writer(self, schema: Schema, references: References) -> Any:
        """Another version, as `decode` takes it; this one is its own writer."""

    def decode(self, data: bytes, at: int, writer: Any, indexes: tuple[int, ...]) -> Any: ...

    def prefix(self, schema_id: int) -> bytes: ...

    def encode(self, value: Any) -> bytes: ...


class RegisteredAvro:
    def __init__(self, schema: Schema, references: References, message: str) -> None:
        from fastavro.schema import expand_schema

        from barnabas.schemas.serdes.avro import AvroCodec

        self._make = AvroCodec
        self._codec = AvroCodec(schema, references)
        expanded: Any = self._codec.parsed
        if isinstance(expanded, dict | list):
            expanded = expand_schema(expanded)
        self.ddl = ddl_of(expanded, {})

    def writer(self, schema: Schema, references: References) -> Any:
        return self._make(schema, references)

    def decode(self, data: bytes, at: int, writer: Any, indexes: tuple[int, ...]) -> Any:
        codec = self._codec if writer is self else writer
        if codec.is_bytes:
            return data[at:]
        stream = io.BytesIO(data)
        stream.seek(at)
        value = codec.read(stream, codec.parsed, None if codec is self._codec else self._codec.parsed)
        if stream.tell() != len(data):
            raise ValueError(f"{len(data) - stream.tell()} bytes are left over")
        return value

    def prefix(self, schema_id: int) -> bytes:
        return SchemaId(id=schema_id).id_prefix()

    def encode(self, value: Any) -> bytes:
        return self._codec.encode(value)


class RegisteredJson:
    """JSON values are read by the columns of the reader's version; what they do not name is left out."""

    def __init__(self, schema: Schema, references: References, message: str) -> None:
        from barnabas.schemas.serdes.json_schema import JsonCodec

        self._codec = JsonCodec(schema, references, dumps=self._dumps)
        texts = {one.reference.name: one.text for one in references}
        self.ddl = ddl_of_json_schema(schema.text, texts)
        self._kind = parse_columns(f"value {self.ddl}")[0].kind

    def writer(self, schema: Schema, references: References) -> Any:
        return schema

    def decode(self, data: bytes, at: int, writer: Any, indexes: tuple[int, ...]) -> Any:
        found = json.loads(data[at:], parse_float=decimal.Decimal)
        if self._kind.name == "struct" and not isinstance(found, dict):
            raise ValueError(f"a JSON object is needed, this is {json.dumps(found, default=str)[:40]}")
        return from_json(found, self._kind)

    def prefix(self, schema_id: int) -> bytes:
        return SchemaId(id=schema_id).id_prefix()

    def encode(self, value: Any) -> bytes:
        return self._codec.encode(_without_nulls(value))

    @staticmethod
    def _dumps(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)


def _without_nulls(value: Any) -> Any:
    """The value as JSON has it: a null column is a field that is not there."""
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value if isinstance(value, str | int | float | bool | None) else to_json(value)


class RegisteredProtobuf:
    def __init__(self, schema: Schema, references: References, message: str) -> None:
        from google.protobuf.message_factory import GetMessageClass

        parsed = self.writer(schema, references)
        name = message or parsed.name
        if not name:
            raise ValueError("it declares no message")
        self._name = name
        self._indexes = parsed.message_indexes(name)
        descriptor = parsed.pool.FindMessageTypeByName(name)
        self._class: Callable[[], Any] = GetMessageClass(descriptor)
        self.ddl = struct_of(descriptor, ())

    def writer(self, schema: Schema, references: References) -> ProtobufSchema:
        from barnabas.schemas.protobuf.parsing import parse

        return parse(schema.text, references)

    def decode(self, data: bytes, at: int, writer: Any, indexes: tuple[int, ...]) -> Any:
        if writer is self:
            if indexes != self._indexes:
                raise ValueError(f"the record is not a message {self._name}, its indexes are {list(indexes)}")
        else:
            written = writer.message_name(indexes)
            if written != self._name:
                raise ValueError(f"the record is a message {written}, not {self._name}")
        message = self._class()
        message.ParseFromString(data[at:])
        return value_of(message)

    def prefix(self, schema_id: int) -> bytes:
        return SchemaId(id=schema_id, indexes=self._indexes).id_prefix()

    def encode(self, value: Any) -> bytes:
        message = self._class()
        fill(message, value)
        data: bytes = message.SerializeToString(deterministic=True)
        return data


TYPES: dict[str, Callable[[Schema, References, str], RegisteredType]] = {
    "AVRO": RegisteredAvro,
    "JSON": RegisteredJson,
    "PROTOBUF": RegisteredProtobuf,
}
