"""AvroConverter: Connect's data as Avro with schemas in a registry, in Confluent's bytes and settings.

In: columns. Out: payloads of Avro, and back, by fastavro. Does not know: how schemas are translated.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.connect.config import ConfigType, Importance, Settings
from barnabas.connect.convert.registered.avro_schemas import (
    LOGICAL,
    AvroOptions,
    OfAvro,
    ToAvro,
    is_union,
    scrubbed,
)
from barnabas.connect.convert.registered.converter import RegistryConverter
from barnabas.connect.convert.registered.settings import registry_settings
from barnabas.connect.data import DataError, Schema
from barnabas.connect.data.schema import Type
from barnabas.schemas.client.values import AVRO
from barnabas.schemas.client.values import Schema as RegistrySchema
from barnabas.schemas.model import ResolvedReference

Convert = Callable[[Any], Any]


class AvroConverter(RegistryConverter):
    JAVA_NAMES = ("io.confluent.connect.avro.AvroConverter",)
    SCHEMA_TYPE = AVRO
    CONFIG = registry_settings()
    for _name, _default, _doc in (
        ("enhanced.avro.schema.support", False, "Enums and names of unions survive a round trip."),
        ("connect.meta.data", True, "Write properties connect.* into schemas."),
        ("scrub.invalid.names", False, "Replace characters in names that Avro does not allow."),
        ("allow.optional.map.keys", False, "Maps with optional texts as keys are maps of Avro."),
        ("generalized.sum.type.support", False, "Unions and enums have names that all converters share."),
        ("discard.type.doc.default", False, "Leave out documentation and defaults of types."),
    ):
        CONFIG.define(_name, ConfigType.BOOLEAN, _default, Importance.LOW, _doc)

    def prepare(self, settings: Settings) -> None:
        self._options = AvroOptions(
            settings.flag("enhanced.avro.schema.support"),
            settings.flag("connect.meta.data"),
            settings.flag("scrub.invalid.names"),
            settings.flag("allow.optional.map.keys"),
            settings.flag("generalized.sum.type.support"),
        )

    def definition(self, schema: Schema) -> tuple[RegistrySchema, str | None]:
        made = ToAvro(self._options)
        text = json.dumps(made.schema(schema), separators=(",", ":"), ensure_ascii=False)
        name = made.name(schema) if schema.type is Type.STRUCT else None
        return RegistrySchema(text, AVRO), name

    def encoder(
        self, found: RegistrySchema, references: Sequence[ResolvedReference], schema: Schema
    ) -> AvroEncoder:
        return AvroEncoder(resolved(found, references), schema, self._options)

    def decoder(
        self, found: RegistrySchema, references: Sequence[ResolvedReference], indexes: tuple[int, ...]
    ) -> AvroDecoder:
        return AvroDecoder(resolved(found, references), self._options)


def resolved(found: RegistrySchema, references: Sequence[ResolvedReference]) -> Any:
    """The schema as JSON, with the types of its references in their places."""
    from barnabas.schemas.avro.parsing import RESOLVED, parse

    return json.loads(parse(found.text, references).formatted(RESOLVED))


class AvroEncoder:
    indexes: tuple[int, ...] = ()

    def __init__(self, avro: Any, schema: Schema, options: AvroOptions) -> None:
        import fastavro

        self._parsed = fastavro.parse_schema(known_types(avro))
        self._write = fastavro.schemaless_writer
        self._convert = to_avro(schema, options)
        self._is_bytes = (avro if isinstance(avro, str) else "") == "bytes"

    def encode(self, value: Any) -> bytes:
        if self._convert is not None:
            value = self._convert(value)
        if self._is_bytes:
            return bytes(value)  # a payload of bytes alone is written without its length
        out = io.BytesIO()
        self._write(out, self._parsed, value)
        return out.getvalue()


class AvroDecoder:
    def __init__(self, avro: Any, options: AvroOptions) -> None:
        import fastavro

        from barnabas.schemas.avro.payload_reader import payload_reader

        self.schema = OfAvro(options).schema(avro)
        known = known_types(avro)
        self._parsed = fastavro.parse_schema(known)
        self._read = payload_reader(known)
        self._convert = of_avro(self.schema, avro, options)
        self._is_bytes = avro == "bytes"

    def decode(self, payload: bytes) -> Any:
        if self._is_bytes:
            return payload
        stream = io.BytesIO(payload)
        value = self._read(
            stream, self._parsed, None, return_record_name=True, return_record_name_override=True
        )
        if stream.tell() != len(payload):
            raise DataError(f"{len(payload) - stream.tell()} bytes are left behind the Avro value")
        return value if self._convert is None else self._convert(value)


def known_types(avro: Any) -> Any:
    """The schema without logical types that Connect does not have: their values stay numbers and texts."""
    if isinstance(avro, list):
        return [known_types(each) for each in avro]
    if not isinstance(avro, dict):
        return avro
    found = {
        name: known_types(each) if name in ("type", "items", "values", "fields") else each
        for name, each in avro.items()
        if not name.startswith("connect.")
    }
    if found.get("logicalType") not in (None, *LOGICAL.values()):
        del found["logicalType"]
    return found


def to_avro(schema: Schema, options: AvroOptions) -> Convert | None:
    """A function from Connect's values to fastavro's; None where they are the same."""
    own = _to_avro(schema, options)
    if schema.default is None or schema.optional:
        return own
    default = schema.default
    return lambda value: default if value is None else value if own is None else own(value)


def _to_avro(schema: Schema, options: AvroOptions) -> Convert | None:
    if schema.type is Type.STRUCT:
        return _to_union(schema, options) if is_union(schema) else _to_record(schema, options)
    if schema.type is Type.ARRAY:
        assert schema.value is not None
        item = to_avro(schema.value, options)
        if item is None:
            return None
        return lambda value: None if value is None else [item(each) for each in value]
    if schema.type is Type.MAP:
        assert schema.key is not None and schema.value is not None
        key, one = to_avro(schema.key, options), to_avro(schema.value, options)
        if schema.key.type is Type.STRING and (options.optional_keys or not schema.key.optional):
            if one is None:
                return None
            return lambda value: None if value is None else {name: one(v) for name, v in value.items()}
        keys, values = key or same, one or same
        return lambda value: (
            None if value is None else [{"key": keys(k), "value": values(v)} for k, v in value.items()]
        )
    return None


def same(value: Any) -> Any:
    return value


def _to_record(schema: Schema, options: AvroOptions) -> Convert | None:
    parts = [
        (one.name, scrubbed(one.name) if options.scrubs else one.name, to_avro(one.schema, options))
        for one in schema.fields
    ]
    if all(convert is None and name == written for name, written, convert in parts):
        return None

    def convert_record(value: Any) -> Any:
        if value is None:
            return None
        return {
            written: value[name] if convert is None else convert(value[name])
            for name, written, convert in parts
        }

    return convert_record


def _to_union(schema: Schema, options: AvroOptions) -> Convert:
    parts = [(one.name, one.schema, to_avro(one.schema, options) or same) for one in schema.fields]

    def convert_union(value: Any) -> Any:
        for name, own, convert in parts if value is not None else ():
            if value[name] is not None:
                made = convert(value[name])
                if own.type is not Type.STRUCT or own.name is None:
                    return made
                return (scrubbed(own.name) if options.scrubs else own.name), made
        return None

    return convert_union


def of_avro(schema: Schema, avro: Any, options: AvroOptions) -> Convert | None:
    """A function from fastavro's values to Connect's; None where they are the same."""
    if isinstance(avro, list):
        others = [each for each in avro if each != "null"]
        return of_avro(schema, others[0], options) if len(others) == 1 else _of_union(schema, others, options)
    if schema.type is Type.STRUCT and isinstance(avro, dict):
        inner = avro.get("fields") or avro["type"]["fields"]
        parts = [
            (one.name, convert)
            for one, written in zip(schema.fields, inner, strict=True)
            if (convert := of_avro(one.schema, written["type"], options)) is not None
        ]
        if not parts:
            return None

        def convert_record(value: Any) -> Any:
            if value is not None:
                for name, convert in parts:
                    value[name] = convert(value[name])
            return value

        return convert_record
    if schema.type is Type.ARRAY and isinstance(avro, dict):
        assert schema.value is not None
        item = of_avro(schema.value, avro["items"], options)
        return None if item is None else lambda value: value and [item(each) for each in value]
    if schema.type is Type.MAP and isinstance(avro, dict):
        return _of_map(schema, avro, options)
    return None


def _of_map(schema: Schema, avro: dict[str, Any], options: AvroOptions) -> Convert | None:
    assert schema.key is not None and schema.value is not None
    if avro["type"] == "map":
        one = of_avro(schema.value, avro["values"], options)
        return None if one is None else lambda value: value and {k: one(v) for k, v in value.items()}
    key_type, value_type = (each["type"] for each in avro["items"]["fields"])
    keys = of_avro(schema.key, key_type, options) or same
    values = of_avro(schema.value, value_type, options) or same
    return lambda value: (
        None if value is None else {keys(each["key"]): values(each["value"]) for each in value}
    )


PYTHON = {
    Type.BOOLEAN: (bool,), Type.INT32: (int,), Type.INT64: (int,), Type.FLOAT32: (float,),
    Type.FLOAT64: (float,), Type.STRING: (str,), Type.BYTES: (bytes,), Type.ARRAY: (list,),
    Type.MAP: (dict,), Type.STRUCT: (dict,),
}  # fmt: skip


def _of_union(schema: Schema, branches: list[Any], options: AvroOptions) -> Convert:
    """A union of several types becomes a struct in which one field is set."""
    parts = []
    for one, branch in zip(schema.fields, branches, strict=True):
        name = branch.get("name", "") if isinstance(branch, dict) else branch
        parts.append((one.name, one.schema, str(name), of_avro(one.schema, branch, options) or same))

    def convert_union(value: Any) -> Any:
        if value is None:
            return None
        found: dict[str, Any] = dict.fromkeys(one.name for one in schema.fields)
        named, value = value if isinstance(value, tuple) else (None, value)
        for field, own, name, convert in parts:
            fits = (
                named.rpartition(".")[2] == name.rpartition(".")[2]
                if named is not None
                else own.logical is not None
                or (
                    isinstance(value, PYTHON[own.type])
                    and not (own.type in NUMBERS and value in (True, False) and isinstance(value, bool))
                )
            )
            if fits:
                found[field] = convert(value)
                return found
        raise DataError(f"a {type(value).__name__} fits none of the types of a union")

    return convert_union


NUMBERS = (Type.INT32, Type.INT64)
