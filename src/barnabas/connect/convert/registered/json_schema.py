"""JsonSchemaConverter: Connect's data as JSON with schemas in a registry, with Confluent's settings.

In: columns. Out: payloads of JSON behind a schema id, and back. Does not know: how schemas are translated.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import orjson

from barnabas.connect.config import ConfigType, Importance, Settings, one_of_any_case
from barnabas.connect.convert.json_schemas import value_of_json, value_to_json
from barnabas.connect.convert.registered.converter import RegistryConverter
from barnabas.connect.convert.registered.json_forms import (
    KEY,
    VALUE,
    JsonOptions,
    OfJsonSchema,
    ToJsonSchema,
    is_sum,
    is_text_map,
)
from barnabas.connect.convert.registered.settings import registry_settings
from barnabas.connect.data import DataError, Schema
from barnabas.connect.data.schema import Type
from barnabas.schemas.client.values import JSON
from barnabas.schemas.client.values import Schema as RegistrySchema
from barnabas.schemas.model import ResolvedReference
from barnabas.schemas.serdes.json_schema import JsonCodec


class JsonSchemaConverter(RegistryConverter):
    JAVA_NAMES = ("io.confluent.connect.json.JsonSchemaConverter",)
    SCHEMA_TYPE = JSON
    CONFIG = registry_settings().define(
        "decimal.format", ConfigType.STRING, "BASE64", Importance.LOW,
        "Decimals are written as base64 of their bytes or as numbers.",
        validator=one_of_any_case("NUMERIC", "BASE64"),
    )  # fmt: skip
    for _name, _default, _doc in (
        ("object.additional.properties", True, "Objects may have properties that the schema lacks."),
        ("use.optional.for.nonrequired", False, "Properties that are not required are optional."),
        ("json.fail.invalid.schema", False, "Check each value by its schema."),
        ("generalized.sum.type.support", False, "Unions and enums have names that all converters share."),
    ):
        CONFIG.define(_name, ConfigType.BOOLEAN, _default, Importance.LOW, _doc)

    def prepare(self, settings: Settings) -> None:
        self._options = JsonOptions(
            settings.flag("object.additional.properties"),
            settings.flag("use.optional.for.nonrequired"),
            settings.flag("generalized.sum.type.support"),
        )
        self._is_numeric = settings.text("decimal.format").upper() == "NUMERIC"
        self._checks = settings.flag("json.fail.invalid.schema")

    def definition(self, schema: Schema) -> tuple[RegistrySchema, str | None]:
        made = ToJsonSchema(self._options).schema(schema)
        return RegistrySchema(dumped(made).decode(), JSON), schema.name

    def encoder(
        self, found: RegistrySchema, references: Sequence[ResolvedReference], schema: Schema
    ) -> JsonEncoder:
        codec = JsonCodec(found, references) if self._checks else None
        return JsonEncoder(schema, codec, self._is_numeric)

    def decoder(
        self, found: RegistrySchema, references: Sequence[ResolvedReference], indexes: tuple[int, ...]
    ) -> JsonDecoder:
        content = json.loads(found.text)
        others = {one.reference.name: json.loads(one.text) for one in references}
        codec = JsonCodec(found, references) if self._checks else None
        return JsonDecoder(OfJsonSchema(self._options, content, others).schema(content), codec)


class JsonEncoder:
    indexes: tuple[int, ...] = ()

    def __init__(self, schema: Schema, codec: JsonCodec | None, is_numeric: bool) -> None:
        self._schema = schema
        self._codec = codec
        self._is_numeric = is_numeric

    def encode(self, value: Any) -> bytes:
        made = to_json(value, self._schema, self._is_numeric)
        if self._codec is not None:
            self._codec.check(made)
        return dumped(made)


class JsonDecoder:
    def __init__(self, schema: Schema, codec: JsonCodec | None) -> None:
        self.schema = schema
        self._codec = codec

    def decode(self, payload: bytes) -> Any:
        found = orjson.loads(payload)
        if self._codec is not None:
            self._codec.check(found)
        return of_json(found, self.schema)


def dumped(value: Any) -> bytes:
    """JSON with decimals as numbers of all their digits."""
    return orjson.dumps(value, default=number)


def number(value: Any) -> orjson.Fragment:
    if isinstance(value, Decimal):
        return orjson.Fragment(format(value, "f"))
    raise TypeError(f"JSON has no {type(value).__name__}")


def to_json(value: Any, schema: Schema, numeric: bool) -> Any:
    if value is None:
        value = schema.default
    if value is None:
        return None
    if schema.type is Type.STRUCT:
        if is_sum(schema):
            chosen = next((one for one in schema.fields if value.get(one.name) is not None), None)
            return None if chosen is None else to_json(value[chosen.name], chosen.schema, numeric)
        return {one.name: to_json(value.get(one.name), one.schema, numeric) for one in schema.fields}
    if schema.type is Type.ARRAY:
        assert schema.value is not None
        item = schema.value
        return [to_json(each, item, numeric) for each in value]
    if schema.type is Type.MAP:
        assert schema.key is not None and schema.value is not None
        key, one = schema.key, schema.value
        if is_text_map(schema):
            return {name: to_json(each, one, numeric) for name, each in value.items()}
        return [{KEY: to_json(k, key, numeric), VALUE: to_json(v, one, numeric)} for k, v in value.items()]
    return value_to_json(value, schema, numeric=numeric)


def of_json(found: Any, schema: Schema, path: str = "") -> Any:
    if found is None or schema.type.is_primitive:
        return value_of_json(found, schema, path)
    if schema.type is Type.STRUCT:
        if is_sum(schema):
            return of_sum(found, schema, path)
        if not isinstance(found, dict):
            raise DataError(f"{path or 'the value'} must be an object, not {found!r:.60}")
        return {
            one.name: of_json(found.get(one.name), one.schema, f"{path}.{one.name}" if path else one.name)
            for one in schema.fields
        }
    if schema.type is Type.ARRAY and isinstance(found, list):
        item = schema.value
        assert item is not None
        return [of_json(each, item, f"{path}[]") for each in found]
    if schema.type is Type.MAP:
        key, one = schema.key, schema.value
        assert key is not None and one is not None
        if isinstance(found, dict):
            return {name: of_json(each, one, f"{path}.{name}") for name, each in found.items()}
        if isinstance(found, list) and all(isinstance(each, dict) for each in found):
            return {
                of_json(each.get(KEY), key, f"{path} key"): of_json(each.get(VALUE), one, path)
                for each in found
            }
    raise DataError(f"{path or 'the value'} must be {schema.type}, not {found!r:.60}")


def of_sum(found: Any, schema: Schema, path: str) -> dict[str, Any]:
    """The first branch that takes the value is set."""
    for one in schema.fields:
        try:
            made = of_json(found, one.schema, path)
        except DataError:
            continue
        return {**dict.fromkeys(schema.field_names), one.name: made}
    raise DataError(f"{path or 'the value'} fits no branch of its schema: {found!r:.60}")
