"""Payloads become values, with the schema that each of them names.

In: bytes with their contexts. Out: values, or SerializationError. Does not know: which face runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.schemas.client.core import RegistryCore
from barnabas.schemas.client.errors import RegistryError
from barnabas.schemas.client.values import AVRO, JSON, PROTOBUF, RegisteredSchema, Schema
from barnabas.schemas.serdes import protobuf
from barnabas.schemas.serdes.avro import AvroCodec
from barnabas.schemas.serdes.codecs import Codecs
from barnabas.schemas.serdes.context import Context, SerializationError, failure, is_key
from barnabas.schemas.serdes.framing import (
    KEY_HEADER,
    VALUE_HEADER,
    BadFrame,
    SchemaId,
    header_of,
    read_prefix,
)
from barnabas.schemas.serdes.json_schema import JsonCodec
from barnabas.schemas.serdes.settings import DeserializerSettings
from barnabas.schemas.serdes.writing import as_schema


class Reader:
    """Reads payloads of one type of schema."""

    schema_type = ""
    _form: str | None = None

    def __init__(self, core: RegistryCore, settings: DeserializerSettings, codecs: Codecs) -> None:
        self._core = core
        self._settings = settings
        self._codecs = codecs

    async def read(self, data: bytes, context: Context) -> Any:
        try:
            named, payload = self._named(data, context)
            subject = self._settings.subject_of(context, None)
            written = await self._schema(named, subject)
            if written.schema.schema_type != self.schema_type:
                raise SerializationError(f"its schema is of type {written.schema.schema_type}")
            writer = await self._codecs.of(written.schema)
            if self._settings.takes_latest and subject is None:
                subject = self._settings.subject_of(context, writer.name)
            latest = await self._latest(subject) if self._settings.takes_latest else None
            reader = await self._codecs.of(latest.schema) if latest is not None else None
            return await self._decode(payload, named, writer, reader)
        except RegistryError as error:
            raise failure(context, "deserialized", error) from error
        except Exception as error:  # decoders raise what they like; bytes come from anybody
            is_ours = isinstance(error, BadFrame | SerializationError)
            raise failure(
                context, "deserialized", error if is_ours else f"{type(error).__name__}: {error}"
            ) from error

    def _named(self, data: bytes, context: Context) -> tuple[SchemaId, bytes]:
        """The schema of the payload: a header names it, or the bytes before the payload."""
        header = header_of(context.headers, KEY_HEADER if is_key(context) else VALUE_HEADER)
        options = {
            "with_indexes": self.schema_type == PROTOBUF,
            "zigzag": not self._settings.use_deprecated_format,
        }
        if header is not None:
            return read_prefix(header, **options)[0], data
        named, at = read_prefix(data, **options)
        return named, data[at:]

    async def _schema(self, named: SchemaId, subject: str | None) -> RegisteredSchema:
        if named.guid is not None:
            return await self._core.by_guid(named.guid, self._form)
        assert named.id is not None
        try:
            return await self._core.by_id(named.id, subject, self._form)
        except RegistryError as error:
            if error.is_not_found:
                raise SerializationError(
                    f"the registry knows no schema with id {named.id}: {error}"
                ) from error
            raise

    async def _latest(self, subject: str | None) -> RegisteredSchema:
        if subject is None:
            raise SerializationError("use.latest.version needs a subject: give a context with a topic")
        wanted = self._settings.use_latest_with_metadata
        if wanted is not None:
            return await self._core.latest_with_metadata(subject, wanted, deleted=True, form=self._form)
        return await self._core.version(subject, "latest", form=self._form)

    async def _decode(self, payload: bytes, named: SchemaId, writer: Any, reader: Any) -> Any:
        raise NotImplementedError


class AvroReader(Reader):
    """Reads into the reader's schema: the given one, else the latest if asked for, else the writer's."""

    schema_type = AVRO

    def __init__(
        self,
        core: RegistryCore,
        schema: str | Schema | None,
        conf: Mapping[str, Any] | None,
        with_names: bool = False,
    ) -> None:
        super().__init__(core, DeserializerSettings.of(conf), Codecs(core, AvroCodec))
        self._own = as_schema(schema, AVRO)
        self._with_names = with_names

    async def _decode(self, payload: bytes, named: SchemaId, writer: Any, reader: Any) -> Any:
        if reader is None and self._own is not None:
            reader = await self._codecs.of(self._own)
        return writer.decode(payload, reader, self._with_names)


class JsonReader(Reader):
    """Checks values by the reader's schema: the one that is given, else the latest, else the writer's."""

    schema_type = JSON

    def __init__(
        self, core: RegistryCore, schema: str | Schema | None, conf: Mapping[str, Any] | None
    ) -> None:
        settings = DeserializerSettings.of(conf)
        codecs = Codecs(core, lambda schema, known: JsonCodec(schema, known, validate=settings.validate))
        super().__init__(core, settings, codecs)
        self._own = as_schema(schema, JSON)

    async def _decode(self, payload: bytes, named: SchemaId, writer: Any, reader: Any) -> Any:
        if reader is None and self._own is not None:
            reader = await self._codecs.of(self._own)
        checking = reader or writer
        value = writer.decode(payload)
        checking.check(value)
        return value


class ProtobufReader(Reader):
    """Reads messages of a given class, or of the class that the payload's schema and indexes describe."""

    schema_type = PROTOBUF
    _form = protobuf.SERIALIZED

    def __init__(self, core: RegistryCore, message_type: Any | None, conf: Mapping[str, Any] | None) -> None:
        super().__init__(
            core, DeserializerSettings.of(conf), Codecs(core, protobuf.ProtobufCodec, self._form)
        )
        self._type = message_type

    async def _decode(self, payload: bytes, named: SchemaId, writer: Any, reader: Any) -> Any:
        message = (self._type or writer.message_class(named.indexes))()
        message.ParseFromString(payload)
        return message
