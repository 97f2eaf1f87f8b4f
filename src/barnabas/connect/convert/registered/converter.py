"""The frame of converters with a registry: prefixes with schema ids, schemas looked up or registered once.

In: columns of payloads or values. Out: columns of values or payloads. Payloads of one schema are decoded
together; a batch with several schemas has one part for each run. A registry that is away raises
RetriableError; a record that names no known schema fails alone. Does not know: Avro, JSON Schema, Protobuf.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config import ConfigDef, Settings
from barnabas.connect.convert.contract import Converted, Converter, Encoded, Part, runs
from barnabas.connect.convert.registered.settings import client_of, registry_settings, writing
from barnabas.connect.data import Column, DataError, Headers, Schema
from barnabas.connect.plugins import RetriableError
from barnabas.schemas.client.errors import RegistryError
from barnabas.schemas.client.faces import run
from barnabas.schemas.client.values import RegisteredSchema
from barnabas.schemas.client.values import Schema as RegistrySchema
from barnabas.schemas.model import ResolvedReference
from barnabas.schemas.serdes.context import MessageField, SerializationContext
from barnabas.schemas.serdes.framing import SchemaId, read_prefix

ID_BYTES = 5
RETRIED = (0, 408, 429, 500, 502, 503, 504)


class Decoder(Protocol):
    """Reads payloads of one registered schema."""

    schema: Schema

    def decode(self, payload: bytes) -> Any:
        """The value of a payload, as Connect has it."""


class Encoder(Protocol):
    """Writes values with one registered schema. `indexes` are those of a Protobuf message."""

    indexes: tuple[int, ...]

    def encode(self, value: Any) -> bytes: ...


class RegistryConverter(Converter):
    """Subclasses say how schemas are translated and how values are read and written."""

    CONFIG: ClassVar[ConfigDef] = registry_settings()
    SCHEMA_TYPE: ClassVar[str] = ""

    def configure(self, config: Mapping[str, str], is_key: bool) -> None:
        super().configure(config, is_key)
        self._client = client_of(self.settings)
        self._writing = writing(self.settings, is_key)
        self._field = MessageField.KEY if is_key else MessageField.VALUE
        self._decoders: OrderedDict[tuple[str, bytes], Decoder] = OrderedDict()
        self._encoders: OrderedDict[tuple[str, Schema], tuple[bytes, Encoder]] = OrderedDict()
        self._size_max = max(1, self.settings.integer("schemas.cache.config"))
        self.prepare(self.settings)

    def close(self) -> None:
        self._client.close()

    # -- what a format brings ------------------------------------------------------------------------

    def prepare(self, settings: Settings) -> None:
        """Read the settings of the format."""

    def definition(self, schema: Schema) -> tuple[RegistrySchema, str | None]:
        """The schema as it is registered, and the name of its record."""
        raise NotImplementedError

    def encoder(
        self, found: RegistrySchema, references: Sequence[ResolvedReference], schema: Schema
    ) -> Encoder:
        raise NotImplementedError

    def decoder(
        self, found: RegistrySchema, references: Sequence[ResolvedReference], indexes: tuple[int, ...]
    ) -> Decoder:
        raise NotImplementedError

    # -- reading -------------------------------------------------------------------------------------

    def from_bytes(self, topic: str, data: pa.Array, headers: list[Headers] | None = None) -> Converted:
        failures: dict[int, Exception] = {}
        schemas: list[Schema | None] = [None] * len(data)
        values: list[Any] = [None] * len(data)
        known: dict[bytes, tuple[Decoder, int] | Exception] = {}
        starts = pc.binary_slice(data, 0, ID_BYTES).to_pylist()
        has_indexes = self.SCHEMA_TYPE == "PROTOBUF"
        for index, (start, payload) in enumerate(zip(starts, data.to_pylist(), strict=True)):
            if start is None:
                continue
            try:
                named, at = start, ID_BYTES
                if has_indexes or start[:1] != b"\0" or len(start) < ID_BYTES:
                    _, at = read_prefix(payload, with_indexes=has_indexes)
                    named = payload[:at]
                found = known.get(named)
                if found is None:
                    found = known[named] = self._reading(topic, named, at)
                if isinstance(found, Exception):
                    raise found
                schemas[index] = found[0].schema
                values[index] = found[0].decode(payload[at:])
            except RetriableError:
                raise
            except Exception as error:  # decoders raise what they like; bytes come from anybody
                failures[index] = error if isinstance(error, DataError) else DataError(problem(error))
        if len(known) == 1 and not failures and not data.null_count:
            try:
                return Converted([Part(list(range(len(data))), Column.of(values, schemas[0]))])
            except DataError:
                pass  # some value does not fit: the other road finds out which
        return runs(schemas, values, failures)

    def _reading(self, topic: str, prefix: bytes, length: int) -> tuple[Decoder, int] | Exception:
        key = (topic, prefix)
        held = self._decoders.get(key)
        if held is not None:
            self._decoders.move_to_end(key)
            return held, length
        try:
            held = self._looked_up(topic, prefix)
        except RetriableError:
            raise
        except Exception as error:  # a schema that cannot be had or read: all its records fail
            return error if isinstance(error, DataError) else DataError(problem(error))
        self._decoders[key] = held
        while len(self._decoders) > self._size_max:
            self._decoders.popitem(last=False)
        return held, length

    def _looked_up(self, topic: str, prefix: bytes) -> Decoder:
        named, _ = read_prefix(prefix, with_indexes=self.SCHEMA_TYPE == "PROTOBUF")
        subject = self._writing.subject_of(SerializationContext(topic, self._field), None)
        try:
            if named.guid is not None:
                found = self._client.get_schema_by_guid(named.guid)
            else:
                found = self._client.get_schema(named.id or 0, subject)
            if found.schema.schema_type != self.SCHEMA_TYPE:
                raise DataError(f"schema {named.id} is {found.schema.schema_type}, not {self.SCHEMA_TYPE}")
            references = run(self._client.core.resolved(found.schema))
        except RegistryError as error:
            raise refused(error) from error
        return self.decoder(found.schema, references, named.indexes)

    # -- writing -------------------------------------------------------------------------------------

    def to_bytes(self, topic: str, column: Column, headers: list[Headers] | None = None) -> Encoded:
        if column.schema is None:
            return self._without_schema(column)
        try:
            prefix, encoder = self._chosen(topic, column.schema)
        except RetriableError:
            raise
        except Exception as error:
            failure = error if isinstance(error, DataError) else DataError(problem(error))
            return Encoded(pa.nulls(len(column), pa.binary()), dict.fromkeys(range(len(column)), failure))
        failures: dict[int, Exception] = {}
        found: list[bytes | None] = []
        encode = encoder.encode
        for index, value in enumerate(column.pylist()):
            if value is None:
                found.append(None)
                continue
            try:
                found.append(prefix + encode(value))
            except Exception as error:  # encoders raise what they like
                failures[index] = DataError(problem(error))
                found.append(None)
        return Encoded(pa.array(found, pa.binary()), failures)

    @staticmethod
    def _without_schema(column: Column) -> Encoded:
        error = DataError("a value without schema cannot be written with a registry: records need a schema")
        failures: dict[int, Exception] = {
            index: error for index, value in enumerate(column.data) if value is not None
        }
        return Encoded(pa.nulls(len(column), pa.binary()), failures)

    def _chosen(self, topic: str, schema: Schema) -> tuple[bytes, Encoder]:
        key = (topic, schema)
        held = self._encoders.get(key)
        if held is not None and not self._writing.takes_latest:
            self._encoders.move_to_end(key)
            return held
        own, name = self.definition(schema)
        subject = self._writing.subject_of(SerializationContext(topic, self._field), name)
        if subject is None:
            raise DataError("the subject name strategy needs a schema with a name: use SetSchemaMetadata")
        try:
            found = self._registered(subject, own)
            if held is not None and held[0][1:ID_BYTES] == (found.id or 0).to_bytes(4, "big"):
                return held
            references = run(self._client.core.resolved(found.schema))
        except RegistryError as error:
            raise refused(error) from error
        encoder = self.encoder(found.schema, references, schema)
        held = SchemaId(found.id, found.guid, encoder.indexes).id_prefix(), encoder
        self._encoders[key] = held
        while len(self._encoders) > self._size_max:
            self._encoders.popitem(last=False)
        return held

    def _registered(self, subject: str, own: RegistrySchema) -> RegisteredSchema:
        settings = self._writing
        if settings.use_schema_id is not None:
            return self._client.get_schema(settings.use_schema_id, subject)
        if settings.use_latest_version:
            return self._client.get_version(subject, "latest")
        if settings.auto_register:
            return self._client.register_schema(subject, own, settings.normalize)
        return self._client.lookup_schema(subject, own, settings.normalize)


def refused(error: RegistryError) -> Exception:
    """An error of the registry: tried again where that may help, else an error of the record."""
    if error.status in RETRIED:
        return RetriableError(f"the schema registry cannot answer: {error}")
    return DataError(f"the schema registry refused: {error}")


def problem(error: Exception) -> str:
    return str(error) if isinstance(error, DataError | ValueError) else f"{type(error).__name__}: {error}"
