"""AVRO, JSON_SR and PROTOBUF: rows behind the id of a schema in a registry, as Confluent writes them.

Reading takes the schema that the bytes name; columns match its fields in any case. Writing takes the schema
of the columns (registered before, or now), or the one that `schema_id` pins. PROTOBUF_NOSR is the same
without the prefix. Connect's converters read and write the payloads. Does not know: tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from barnabas.connect import data as connect
from barnabas.connect.convert.registered.avro import AvroDecoder, AvroEncoder, resolved
from barnabas.connect.convert.registered.converter import Decoder, Encoder
from barnabas.connect.convert.registered.json_forms import OfJsonSchema
from barnabas.connect.convert.registered.json_schema import JsonDecoder, JsonEncoder
from barnabas.connect.convert.registered.protobuf import ProtobufDecoder, ProtobufEncoder, message_class
from barnabas.plans.serdes import RegistryAway
from barnabas.schemas.client.errors import RegistryError
from barnabas.schemas.client.faces import run
from barnabas.schemas.client.values import RegisteredSchema
from barnabas.schemas.client.values import Schema as RegistrySchema
from barnabas.schemas.model import ResolvedReference
from barnabas.schemas.protobuf.parsing import parse
from barnabas.schemas.serdes.framing import SchemaId, read_prefix
from barnabas.sql.formats.connect_forms import reader_of, record_reader, record_writer, writer_of
from barnabas.sql.formats.contract import BadBytes, BadRow, Row, is_bare
from barnabas.sql.formats.definitions import (
    AVRO_OPTIONS,
    JSON_OPTIONS,
    SCHEMA_ID,
    Definition,
    definition,
    protobuf_options,
)
from barnabas.sql.formats.registries import RegistryPlace, asked
from barnabas.sql.metastore.schemas import Column, Format

DECODERS_MAX = 1000


def subject_of(topic: str, *, is_key: bool) -> str:
    return f"{topic}-{'key' if is_key else 'value'}"


class Values:
    """Between rows and Connect's values, for records and for a bare column."""

    def __init__(self, form: Format, columns: Sequence[Column], *, is_key: bool) -> None:
        self.is_bare = is_bare(form, columns, is_key=is_key)
        self._pairs = [(each.name, each.kind) for each in columns]
        self._record = record_reader(self._pairs)
        self._bare = reader_of(columns[0].kind) if self.is_bare else None

    def writer(self, target: connect.Schema) -> Callable[[Mapping[str, Any]], Any]:
        if not self.is_bare:
            return record_writer(self._pairs, target)
        name, kind = self._pairs[0]
        write = writer_of(kind, target)
        return lambda row: value if (value := row.get(name)) is None or write is None else write(value)

    def row(self, value: Any) -> Row | None:
        if value is None:
            return None
        if self._bare is not None:
            name = self._pairs[0][0]
            if isinstance(value, dict) and len(value) == 1 and self._is_wrapped(value):
                return self._record(value)
            return {name: self._bare(value)}
        if not isinstance(value, dict):
            raise BadBytes(f"a record is needed, not a {type(value).__name__}")
        return self._record(value)

    def _is_wrapped(self, value: dict[Any, Any]) -> bool:
        """A record where a bare value was expected: Kafka Connect and others write keys so."""
        name, kind = self._pairs[0]
        return kind.base not in ("STRUCT", "MAP") and str(next(iter(value))).upper() == name.upper()


class RegisteredRows:
    def __init__(
        self, form: Format, columns: Sequence[Column], *, is_key: bool, topic: str, registry: RegistryPlace
    ) -> None:
        self._form, self._columns, self._is_key = form, tuple(columns), is_key
        self._subject = subject_of(topic, is_key=is_key)
        self._registry = registry
        self._values = Values(form, columns, is_key=is_key)
        self._decoders: dict[bytes, Decoder] = {}
        self._writing: tuple[bytes, Encoder, Callable[[Mapping[str, Any]], Any]] | None = None
        self._has_indexes = form.name == "PROTOBUF"

    # -- reading -------------------------------------------------------------------------------------

    def from_bytes(self, data: bytes) -> Row | None:
        try:
            named, at = read_prefix(data, with_indexes=self._has_indexes)
            prefix = data[:at]
            decoder = self._decoders.get(prefix)
            if decoder is None:
                decoder = self._looked_up(named)
                if len(self._decoders) >= DECODERS_MAX:
                    self._decoders.clear()
                self._decoders[prefix] = decoder
            return self._values.row(decoder.decode(data[at:]))
        except (BadBytes, RegistryAway):
            raise
        except Exception as error:  # decoders raise what they like; bytes come from anybody
            raise BadBytes(f"{self._form.name}: {error or type(error).__name__}") from None

    def _looked_up(self, named: SchemaId) -> Decoder:
        client = self._registry.client()
        found = asked(
            lambda: (
                client.get_schema_by_guid(named.guid)
                if named.guid is not None
                else client.get_schema(named.id or 0, self._subject)
            )
        )
        references = asked(lambda: run(client.core.resolved(found.schema)))
        return decoder_of(self._form, found.schema, references, named.indexes)

    # -- writing -------------------------------------------------------------------------------------

    def to_bytes(self, row: Mapping[str, Any]) -> bytes | None:
        if self._writing is None:
            self._writing = self._chosen()
        prefix, encoder, convert = self._writing
        try:
            value = convert(row)
            return None if value is None else prefix + encoder.encode(value)
        except Exception as error:  # encoders raise what they like
            raise BadRow(f"the row cannot be written as {self._form.name}: {error}") from error

    def _chosen(self) -> tuple[bytes, Encoder, Callable[[Mapping[str, Any]], Any]]:
        own = definition(self._form, self._columns, is_key=self._is_key)
        client = self._registry.client()
        pinned = self._form.properties.get(SCHEMA_ID)
        try:
            if pinned is not None:
                found = asked(lambda: client.get_schema(int(pinned), self._subject))
            else:
                made = RegistrySchema(own.text, own.kind)
                found = asked(lambda: client.register_schema(self._subject, made))
            references = asked(lambda: run(client.core.resolved(found.schema)))
        except RegistryError as error:
            raise BadRow(f"the schema registry refused: {error}") from error
        target = own.schema
        if pinned is not None:
            target = decoder_of(self._form, found.schema, references, (0,)).schema
        encoder = encoder_of(self._form, found, references, target)
        prefix = SchemaId(found.id, found.guid, encoder.indexes).id_prefix()
        return prefix, encoder, self._values.writer(target)


class UnregisteredRows:
    """PROTOBUF_NOSR: messages whose fields are numbered by the order of the columns."""

    def __init__(self, form: Format, columns: Sequence[Column], *, is_key: bool) -> None:
        own: Definition = definition(form, columns, is_key=is_key)
        kind = message_class(parse(own.text, ()), (0,))
        options = protobuf_options(form)
        self._decoder = ProtobufDecoder(kind, options)
        self._encoder = ProtobufEncoder(kind, (0,), own.schema, options)
        self._values = Values(form, columns, is_key=is_key)
        self._write = self._values.writer(own.schema)

    def to_bytes(self, row: Mapping[str, Any]) -> bytes | None:
        try:
            return self._encoder.encode(self._write(row))
        except Exception as error:  # the encoder raises what it likes
            raise BadRow(f"the row cannot be written as PROTOBUF_NOSR: {error}") from error

    def from_bytes(self, data: bytes) -> Row | None:
        try:
            return self._values.row(self._decoder.decode(data))
        except BadBytes:
            raise
        except Exception as error:  # bytes come from anybody
            raise BadBytes(f"PROTOBUF_NOSR: {error or type(error).__name__}") from None


def decoder_of(
    form: Format,
    found: RegistrySchema,
    references: Sequence[ResolvedReference],
    indexes: tuple[int, ...],
) -> Decoder:
    if found.schema_type == "AVRO":
        return AvroDecoder(resolved(found, references), AVRO_OPTIONS)
    if found.schema_type == "JSON":
        import json

        content = json.loads(found.text)
        others = {one.reference.name: json.loads(one.text) for one in references}
        return JsonDecoder(OfJsonSchema(JSON_OPTIONS, content, others).schema(content), None)
    kind = message_class(parse(found.text, references), indexes or (0,))
    return ProtobufDecoder(kind, protobuf_options(form))


def encoder_of(
    form: Format,
    found: RegisteredSchema,
    references: Sequence[ResolvedReference],
    target: connect.Schema,
) -> Encoder:
    if found.schema.schema_type == "AVRO":
        return AvroEncoder(resolved(found.schema, references), target, AVRO_OPTIONS)
    if found.schema.schema_type == "JSON":
        return JsonEncoder(target, None, True)
    kind = message_class(parse(found.schema.text, references), (0,))
    return ProtobufEncoder(kind, (0,), target, protobuf_options(form))
