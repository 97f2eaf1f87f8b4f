"""Values become payloads with the schema that a registry has for them.

In: values with their contexts. Out: bytes in a wire format, or SerializationError. Does not know: which face
runs it; how a type encodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.schemas.client.core import RegistryCore
from barnabas.schemas.client.errors import RegistryError
from barnabas.schemas.client.values import AVRO, JSON, RegisteredSchema, Schema
from barnabas.schemas.model import InvalidSchema, Reference
from barnabas.schemas.serdes import protobuf
from barnabas.schemas.serdes.avro import AvroCodec
from barnabas.schemas.serdes.codecs import Codec, Codecs
from barnabas.schemas.serdes.context import Context, SerializationError, failure, is_key
from barnabas.schemas.serdes.framing import KEY_HEADER, VALUE_HEADER, SchemaId, add_header
from barnabas.schemas.serdes.json_schema import JsonCodec
from barnabas.schemas.serdes.settings import IdLocation, SerializerSettings

ToDict = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The schema of a subject's payloads: its prefix (or header), and how values are encoded."""

    prefix: bytes
    codec: Codec


class Writer:
    """Writes values of one type of schema. Schemas are registered or found once for each subject."""

    def __init__(
        self, core: RegistryCore, schema: Schema | None, settings: SerializerSettings, codecs: Codecs
    ) -> None:
        if schema is None and not settings.takes_latest:
            raise ValueError("a serializer needs a schema, or use.latest.version")
        self._core = core
        self._schema = schema
        self._settings = settings
        self._codecs = codecs
        self._chosen: dict[str, Chosen] = {}  # by subject; topics and records bound it

    async def write(self, value: Any, context: Context) -> bytes:
        try:
            chosen = await self._choose(value, context)
            payload = chosen.codec.encode(value)
            if self._settings.id_location is not IdLocation.HEADER:
                return chosen.prefix + payload
            add_header(context.headers, KEY_HEADER if is_key(context) else VALUE_HEADER, chosen.prefix)
            return payload
        except SerializationError:
            raise
        except RegistryError as error:
            raise failure(context, "serialized", error) from error
        except Exception as error:  # encoders raise what they like; values come from the application
            raise failure(context, "serialized", f"{type(error).__name__}: {error}") from error

    async def _choose(self, value: Any, context: Context) -> Chosen:
        subject = self._settings.subject_of(context, await self._name(value))
        if subject is None:
            raise SerializationError(
                "the subject name strategy needs a topic and, by record, a schema with a name: give a context"
            )
        if self._settings.takes_latest:
            latest = await self._latest(subject)
            return self._made(latest, await self._codecs.of(latest.schema))
        chosen = self._chosen.get(subject)
        if chosen is None:
            schema = await self._own_schema()
            if self._settings.auto_register:
                found = await self._core.register(subject, schema, self._settings.normalize)
            else:
                found = await self._core.lookup(subject, schema, self._settings.normalize)
            if found.guid is None and self._settings.id_location is not IdLocation.PREFIX:
                found = await self._core.lookup(subject, schema, self._settings.normalize)
            chosen = self._chosen[subject] = self._made(found, await self._own_codec())
        return chosen

    async def _latest(self, subject: str) -> RegisteredSchema:
        settings = self._settings
        if settings.use_schema_id is not None:
            return await self._core.by_id(settings.use_schema_id, subject, self._form)
        if settings.use_latest_with_metadata is not None:
            wanted = settings.use_latest_with_metadata
            return await self._core.latest_with_metadata(subject, wanted, deleted=True, form=self._form)
        return await self._core.version(subject, "latest", form=self._form)

    def _made(self, found: RegisteredSchema, codec: Codec) -> Chosen:
        named = SchemaId(found.id, found.guid, self._indexes)
        by_id = self._settings.id_location is IdLocation.PREFIX
        return Chosen(named.id_prefix() if by_id else named.guid_prefix(), codec)

    # Types differ in these.

    _form: str | None = None
    _indexes: tuple[int, ...] = ()

    async def _name(self, value: Any) -> str | None:
        return None if self._schema is None else (await self._own_codec()).name

    async def _own_schema(self) -> Schema:
        assert self._schema is not None  # else the latest is taken
        return self._schema

    async def _own_codec(self) -> Codec:
        codec: Codec = await self._codecs.of(await self._own_schema())
        return codec


def avro_writer(core: RegistryCore, schema: str | Schema | None, conf: Mapping[str, Any] | None) -> Writer:
    settings = SerializerSettings.of(conf)

    def make(schema: Schema, references: Any) -> AvroCodec:
        return AvroCodec(
            schema, references, strict=settings.strict, strict_allow_default=settings.strict_allow_default
        )

    return Writer(core, as_schema(schema, AVRO), settings, Codecs(core, make))


def json_writer(
    core: RegistryCore,
    schema: str | Schema | None,
    conf: Mapping[str, Any] | None,
    dumps: Callable[[Any], str | bytes] | None,
) -> Writer:
    settings = SerializerSettings.of(conf)

    def make(schema: Schema, references: Any) -> JsonCodec:
        return JsonCodec(schema, references, validate=settings.validate, dumps=dumps)

    return Writer(core, as_schema(schema, JSON), settings, Codecs(core, make))


def as_schema(given: str | Schema | None, schema_type: str) -> Schema | None:
    if isinstance(given, Schema):
        if given.schema_type != schema_type:
            raise ValueError(f"the schema is of type {given.schema_type}, not {schema_type}")
        return given
    return None if given is None else Schema(given, schema_type)


class MessageCodec:
    """Messages encode themselves."""

    def __init__(self, message_type: Any) -> None:
        self.name: str = message_type.DESCRIPTOR.full_name
        self._type = message_type

    def encode(self, value: Any) -> bytes:
        if not isinstance(value, self._type):
            raise TypeError(f"the value is a {type(value).__name__}, not a {self._type.__name__}")
        payload: bytes = value.SerializeToString()
        return payload


class ProtobufWriter(Writer):
    """Writes messages of one class. Files that its file imports are registered before it."""

    _form = protobuf.SERIALIZED

    def __init__(self, core: RegistryCore, message_type: Any, conf: Mapping[str, Any] | None) -> None:
        settings = SerializerSettings.of(conf)
        codec = MessageCodec(message_type)
        self._file = message_type.DESCRIPTOR.file
        self._indexes = protobuf.indexes_of(message_type.DESCRIPTOR)
        super().__init__(core, protobuf.schema_of(self._file), settings, Codecs(core, lambda *_: codec))
        self._codec = codec
        self._complete: Schema | None = None  # with references

    async def _name(self, value: Any) -> str | None:
        return self._codec.name

    async def _own_codec(self) -> Codec:
        return self._codec

    async def _own_schema(self) -> Schema:
        if self._complete is None:
            self._complete = await self._with_references(self._file)
        return self._complete

    async def _with_references(self, file: Any) -> Schema:
        references: list[Reference] = []
        for imported in file.dependencies:
            if protobuf.is_known(imported.name):
                continue
            schema = await self._with_references(imported)
            subject = self._settings.reference_subject_of(imported.name)
            if self._settings.auto_register:
                await self._core.register(subject, schema, self._settings.normalize)
            found = await self._core.lookup(subject, schema, self._settings.normalize)
            if found.version is None:
                raise InvalidSchema(f"the registry has no version of {imported.name} in subject {subject}")
            references.append(Reference(imported.name, subject, found.version))
        return protobuf.schema_of(file, references)
