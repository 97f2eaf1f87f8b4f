"""Embedded data of requests and responses: which schema they have, and their bytes in records.

In: how a request names its format and schema; bytes of records. Out: an `Encoder` for all data that name
them the same way; decoded values. Schemas, codecs and encoders are kept, within bounds, so that encoding a
record asks nobody. The latest version of a subject is asked for again after a few seconds.
Does not know: HTTP, records, error codes.
"""

from __future__ import annotations

import asyncio
import binascii
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from barnabas.rest.formats import json_text
from barnabas.rest.formats.codec import Codec
from barnabas.rest.formats.codecs import PLAIN, Codecs
from barnabas.rest.formats.errors import (
    DataMismatch,
    FormatError,
    SchemaMissing,
    SchemaNotFound,
    SchemaRefused,
)
from barnabas.rest.formats.kept import Kept
from barnabas.rest.formats.names import FORMATS_OF_TYPES, DataFormat, SubjectNameStrategy
from barnabas.rest.formats.source import KnownSchema, SchemaSource
from barnabas.schemas.model import InvalidSchema, ParsedSchema, SchemaType
from barnabas.schemas.parsing import parse
from barnabas.schemas.serdes.framing import ID_MAGIC, BadFrame, SchemaId, read_prefix

SCHEMAS_KEPT_MAX = 1_000
PREFIX_BYTES = 5
LATEST_SECONDS = 5.0
UNKNOWN_SECONDS = 5.0  # an id that the registry does not know is not asked for again at once


@dataclass(frozen=True, slots=True)
class SchemaChoice:
    """How a request names the format and the schema of its keys or of its values.

    With no id, version or text, formats with schemas use the latest version of the subject.
    """

    format: DataFormat | None = None  # None: that of the schema
    schema_id: int | None = None
    version: int | None = None
    text: str | None = None
    subject: str | None = None  # None: by the strategy
    strategy: SubjectNameStrategy = SubjectNameStrategy.TOPIC_NAME


class Encoder:
    """Encodes all data of one choice. `subject` and `schema` are None for formats without schemas."""

    __slots__ = ("_codec", "_prefix", "format", "schema", "subject")

    def __init__(
        self,
        format: DataFormat,
        codec: Codec,
        schema: KnownSchema | None = None,
        subject: str | None = None,
    ) -> None:
        self.format = format
        self.schema = schema
        self.subject = subject
        self._codec = codec
        self._prefix = SchemaId(schema.schema_id).id_prefix() if schema is not None else b""

    def encode(self, data: Any) -> bytes | None:
        """The bytes of a key or a value; a null is no bytes at all. DataMismatch says what does not fit."""
        return None if data is None else self._prefix + self._codec.encode(data)


class Formats:
    """All encoders and decoders of one proxy."""

    def __init__(self, source: SchemaSource, kept_max: int = SCHEMAS_KEPT_MAX) -> None:
        self.source = source
        self._codecs = Codecs(kept_max)
        self._by_id: Kept[int, KnownSchema] = Kept(
            kept_max, failures=SchemaNotFound, failure_seconds=UNKNOWN_SECONDS
        )
        self._latest: Kept[str, KnownSchema] = Kept(kept_max, seconds=LATEST_SECONDS)
        self._versions: Kept[tuple[str, int], KnownSchema] = Kept(kept_max)
        self._registered: Kept[tuple[str, SchemaType, str], KnownSchema] = Kept(kept_max)
        self._names: Kept[tuple[SchemaType, str], str | None] = Kept(kept_max)

    async def encoder(self, topic: str, choice: SchemaChoice, *, is_key: bool) -> Encoder:
        """The encoder for data of this choice; FormatError says why there is none."""
        if choice.format in PLAIN:
            return Encoder(choice.format, PLAIN[choice.format])
        schema, subject = await self._choose(topic, choice, is_key=is_key)
        if choice.format is not None and choice.format.schema_type is not schema.schema_type:
            raise SchemaRefused(
                f"Schema {schema.schema_id} is of type {schema.schema_type}, the data are {choice.format}."
            )
        codec = await self._codecs.of(schema)
        return Encoder(FORMATS_OF_TYPES[schema.schema_type], codec, schema, subject)

    async def _choose(
        self, topic: str, choice: SchemaChoice, *, is_key: bool
    ) -> tuple[KnownSchema, str | None]:
        if choice.text is not None:
            if choice.format is None or choice.format.schema_type is None:
                raise SchemaMissing("A schema given as text needs its type: AVRO, JSONSCHEMA or PROTOBUF.")
            return await self._register(topic, choice.format.schema_type, choice, choice.text, is_key=is_key)
        if choice.schema_id is not None:
            schema = await self.by_id(choice.schema_id)
            return schema, await self._subject(topic, choice, schema, is_key=is_key)
        subject = choice.subject or choice.strategy.subject(topic, is_key=is_key)
        source = self.source
        if choice.version is not None:
            version = choice.version
            key = (subject, version)
            found = await self._versions.get(key, lambda: source.by_version(subject, version))
        else:
            found = await self._latest.get(subject, lambda: source.latest(subject))
        return found, subject

    async def _register(
        self, topic: str, schema_type: SchemaType, choice: SchemaChoice, text: str, *, is_key: bool
    ) -> tuple[KnownSchema, str]:
        subject = choice.subject
        if subject is None:
            name = None
            if choice.strategy.needs_record_name:
                named = (schema_type, text)
                name = await self._names.get(named, lambda: asyncio.to_thread(name_of, schema_type, text))
            subject = choice.strategy.subject(topic, is_key=is_key, record_name=name)
        where = subject
        known = await self._registered.get(
            (where, schema_type, text), lambda: self.source.register(where, schema_type, text)
        )
        return known, subject

    async def _subject(
        self, topic: str, choice: SchemaChoice, schema: KnownSchema, *, is_key: bool
    ) -> str | None:
        if choice.subject is not None:
            return choice.subject
        name = None
        if choice.strategy.needs_record_name:
            key = (schema.schema_type, schema.text)
            name = await self._names.get(key, lambda: asyncio.to_thread(parsed_name, schema))
        return choice.strategy.subject(topic, is_key=is_key, record_name=name)

    async def by_id(self, schema_id: int) -> KnownSchema:
        return await self._by_id.get(schema_id, lambda: self.source.by_id(schema_id))

    async def prepare(self, format: DataFormat, payloads: Iterable[bytes | None]) -> dict[int, FormatError]:
        """Make the codecs that these payloads need, for `decode`; tells for each id why there is none."""
        if format in PLAIN:
            return {}
        problems: dict[int, FormatError] = {}
        wanted = {schema_id_of(each) for each in payloads if each is not None and has_prefix(each)}
        for schema_id in wanted:
            if self._by_id.ready(schema_id) is None or self._codecs.ready(schema_id) is None:
                try:
                    await self._codecs.of(await self.by_id(schema_id))
                except FormatError as error:
                    problems[schema_id] = error
        return problems

    def decode(self, format: DataFormat, payload: bytes | None) -> Any:
        """The value of a key or a value, for JSON. DataMismatch if the bytes are no data of this format."""
        if payload is None:
            return None
        codec = PLAIN.get(format)
        if codec is not None:
            return codec.decode(payload)
        schema_id = schema_id_of(payload)
        schema, codec = self._by_id.ready(schema_id), self._codecs.ready(schema_id)
        if codec is None:
            raise DataMismatch(f"schema {schema_id} is not known")
        if schema is not None and schema.schema_type is not format.schema_type:
            raise DataMismatch(f"the record names schema {schema_id}, which is of type {schema.schema_type}")
        return codec.decode(payload[PREFIX_BYTES:])

    def text_decoder(self, format: DataFormat) -> Callable[[bytes], str]:
        """A function that gives data as JSON text, for many records. It raises DataMismatch."""
        if format is DataFormat.BINARY:
            return base64_text
        return checked_json if format is DataFormat.JSON else functools.partial(self._text, format)

    def _text(self, format: DataFormat, payload: bytes) -> str:
        try:
            return json_text.dumps(self.decode(format, payload)).decode()
        except ValueError as error:
            raise DataMismatch(str(error)) from None


def base64_text(payload: bytes) -> str:
    return f'"{binascii.b2a_base64(payload, newline=False).decode()}"'


def checked_json(payload: bytes) -> str:
    """The text as it is: numbers stay as they were written."""
    try:
        json_text.check(payload)
        return payload.decode()
    except ValueError as error:
        raise DataMismatch(f"the record holds no JSON: {error}") from None


def has_prefix(payload: bytes) -> bool:
    return len(payload) >= PREFIX_BYTES and payload[0] == ID_MAGIC


def schema_id_of(payload: bytes) -> int:
    try:
        found = read_prefix(payload)[0].id
    except BadFrame as error:
        raise DataMismatch(f"the record names no schema: {error}") from None
    if found is None:
        raise DataMismatch("the record names its schema by a GUID")
    return found


def name_of(schema_type: SchemaType, text: str) -> str | None:
    try:
        return parse(schema_type, text).name
    except InvalidSchema as error:
        raise SchemaRefused(f"Invalid schema: {error}") from None


def parsed_name(schema: KnownSchema) -> str | None:
    try:
        parsed: ParsedSchema = parse(schema.schema_type, schema.text, schema.references)
    except InvalidSchema as error:
        raise SchemaRefused(f"Schema {schema.schema_id} cannot be used: {error}") from None
    return parsed.name
