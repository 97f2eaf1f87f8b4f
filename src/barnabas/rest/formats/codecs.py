"""Codecs of schemas: each compiled once, and kept while it is used.

In: schemas with their ids. Out: codecs. Compiling runs in a thread, because a large schema takes long;
requests for the same schema wait for one compilation. The number of codecs is bounded.
Does not know: where schemas come from.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import cast

from barnabas.rest.formats.codec import Codec
from barnabas.rest.formats.errors import SchemaRefused
from barnabas.rest.formats.kept import Kept
from barnabas.rest.formats.names import DataFormat
from barnabas.rest.formats.plain import BinaryCodec, JsonCodec, StringCodec
from barnabas.rest.formats.source import KnownSchema
from barnabas.schemas.model import SchemaType

CODECS_MAX = 1_000
TEXT_CHARS_MAX = 1_000_000

PLAIN: dict[DataFormat, Codec] = {
    DataFormat.BINARY: BinaryCodec(),
    DataFormat.JSON: JsonCodec(),
    DataFormat.STRING: StringCodec(),
}
# The library of a type is imported when the first schema of that type is used.
COMPILERS = {
    SchemaType.AVRO: ("barnabas.rest.formats.avro", "AvroCodec"),
    SchemaType.JSON: ("barnabas.rest.formats.json_schema", "JsonSchemaCodec"),
    SchemaType.PROTOBUF: ("barnabas.rest.formats.protobuf", "ProtobufCodec"),
}


class Codecs:
    def __init__(self, codecs_max: int = CODECS_MAX) -> None:
        self._codecs: Kept[int, Codec] = Kept(codecs_max)

    def ready(self, schema_id: int) -> Codec | None:
        return self._codecs.ready(schema_id)

    async def of(self, schema: KnownSchema) -> Codec:
        """The codec of a schema; SchemaRefused if there can be none."""
        return await self._codecs.get(schema.schema_id, lambda: asyncio.to_thread(compile_codec, schema))


def compile_codec(schema: KnownSchema) -> Codec:
    if sum(map(len, (schema.text, *(each.text for each in schema.references)))) > TEXT_CHARS_MAX:
        raise SchemaRefused(f"Schema {schema.schema_id} has more than {TEXT_CHARS_MAX} characters.")
    module, name = COMPILERS[schema.schema_type]
    return cast(Codec, getattr(import_module(module), name)(schema))
