"""The schemas that SQL's formats write for columns: Avro records, JSON Schemas, Protobuf files.

In: a format, columns. Out: the text to register, and Connect's schema behind it. Does not know: registries,
bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from barnabas.connect import data as connect
from barnabas.connect.convert.registered.avro_schemas import AvroOptions, ToAvro
from barnabas.connect.convert.registered.json_forms import JsonOptions, ToJsonSchema
from barnabas.connect.convert.registered.proto_forms import ProtobufOptions, ToProtobuf
from barnabas.connect.data import DataError
from barnabas.sql.errors import SqlError
from barnabas.sql.formats.connect_forms import record_of, schema_of
from barnabas.sql.formats.contract import AVRO, JSON_SR, facts_of, is_bare
from barnabas.sql.metastore.schemas import Column, Format

AVRO_RECORD = "io.confluent.ksql.avro_schemas.KsqlDataSourceSchema"
PROTOBUF_MESSAGE = "ConnectDefault1"
NULLABLE = "nullable_representation"
FULL_NAME = "full_schema_name"
SCHEMA_ID = "schema_id"
AVRO_OPTIONS = AvroOptions()
JSON_OPTIONS = JsonOptions()


@dataclass(frozen=True, slots=True)
class Definition:
    """`text` is the schema as it is registered, `schema` what it means to Connect."""

    kind: str
    text: str
    schema: connect.Schema


def protobuf_options(form: Format) -> ProtobufOptions:
    nullable = form.properties.get(NULLABLE, "").upper()
    return ProtobufOptions(optionals=nullable == "OPTIONAL", wrappers=nullable == "WRAPPER")


def definition(form: Format, columns: Sequence[Column], *, is_key: bool) -> Definition:
    """The schema of the columns. SqlError where the format cannot say a type."""
    name = facts_of(form.name).name
    schema = connect_schema(form, columns, is_key=is_key)
    try:
        if name == AVRO:
            made = ToAvro(AVRO_OPTIONS).schema(schema)
            return Definition("AVRO", json.dumps(made, separators=(",", ":"), ensure_ascii=False), schema)
        if name == JSON_SR:
            return Definition(
                "JSON", orjson.dumps(ToJsonSchema(JSON_OPTIONS).schema(schema)).decode(), schema
            )
        return Definition("PROTOBUF", ToProtobuf(protobuf_options(form)).file(schema)[0], schema)
    except DataError as error:
        raise SqlError(f"The columns cannot be written as {name}: {error}") from error


def connect_schema(form: Format, columns: Sequence[Column], *, is_key: bool) -> connect.Schema:
    name = facts_of(form.name).name
    full_name = form.properties.get(FULL_NAME)
    is_avro = name == AVRO
    record = full_name or (AVRO_RECORD if is_avro else None if name == JSON_SR else PROTOBUF_MESSAGE)
    required = name not in (AVRO, JSON_SR)
    if is_bare(form, columns, is_key=is_key):
        return schema_of(columns[0].kind, name=record if is_avro else None, text_keys_required=required)
    pairs = [(each.name, each.kind) for each in columns]
    return record_of(pairs, name=record, nested=is_avro, text_keys_required=required)
