"""ProtobufConverter: Connect's data as Protobuf with schemas in a registry, with Confluent's settings.

In: columns of structs, or of scalars, which become Google's wrappers. Out: messages behind a schema id and
their indexes, and back. A null scalar in a struct is left out, so it comes back as the type's zero unless
optional.for.nullables or wrapper.for.nullables are set.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.connect.config import ConfigType, Importance, Settings
from barnabas.connect.convert.json_schemas import decimal_bytes, decimal_of_bytes
from barnabas.connect.convert.registered.converter import RegistryConverter
from barnabas.connect.convert.registered.proto_forms import (
    DATE_MESSAGE,
    DECIMAL,
    TIME_MESSAGE,
    TIMESTAMP_MESSAGE,
    WRAPPER_FILE,
    OfProtobuf,
    ProtobufOptions,
    ToProtobuf,
    is_map,
    is_union,
    scrubbed,
)
from barnabas.connect.convert.registered.settings import registry_settings
from barnabas.connect.data import DataError, Schema
from barnabas.connect.data.schema import Type
from barnabas.schemas.client.values import PROTOBUF
from barnabas.schemas.client.values import Schema as RegistrySchema
from barnabas.schemas.model import ResolvedReference
from barnabas.schemas.protobuf.parsing import ProtobufSchema, parse

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
Read = Callable[[Any], Any]


class ProtobufConverter(RegistryConverter):
    JAVA_NAMES = ("io.confluent.connect.protobuf.ProtobufConverter",)
    SCHEMA_TYPE = PROTOBUF
    CONFIG = registry_settings()
    for _name, _default, _doc in (
        ("enhanced.protobuf.schema.support", False, "Messages keep the names of their packages."),
        ("optional.for.nullables", False, "Optional fields have the label optional."),
        ("wrapper.for.nullables", False, "Optional scalars are messages of google.protobuf."),
        ("wrapper.for.raw.primitives", True, "Wrappers alone are read as the values that they hold."),
        ("int.for.enums", False, "Enums are numbers, not texts."),
        ("scrub.invalid.names", False, "Replace characters in names that Protobuf does not allow."),
        ("connect.meta.data", True, "Write options with what Protobuf cannot say."),
        ("generate.struct.for.nulls", False, "Has no effect: null messages stay null."),
        ("generate.index.for.unions", True, "Unions are named with their index."),
        ("generalized.sum.type.support", False, "Unions and enums have names that all converters share."),
    ):
        CONFIG.define(_name, ConfigType.BOOLEAN, _default, Importance.LOW, _doc)

    def prepare(self, settings: Settings) -> None:
        self._options = ProtobufOptions(
            settings.flag("optional.for.nullables"),
            settings.flag("wrapper.for.nullables"),
            settings.flag("scrub.invalid.names"),
            settings.flag("int.for.enums"),
            settings.flag("connect.meta.data"),
            settings.flag("wrapper.for.raw.primitives"),
            settings.flag("enhanced.protobuf.schema.support"),
            settings.flag("generate.index.for.unions"),
            settings.flag("generalized.sum.type.support"),
        )

    def definition(self, schema: Schema) -> tuple[RegistrySchema, str | None]:
        text, name = ToProtobuf(self._options).file(schema)
        return RegistrySchema(text, PROTOBUF), name

    def encoder(
        self, found: RegistrySchema, references: Sequence[ResolvedReference], schema: Schema
    ) -> ProtobufEncoder:
        parsed = parse(found.text, references)
        # The latest schema may have another package, or call its message otherwise: then it is the first one.
        wanted = ToProtobuf(self._options).file(schema)[1].rpartition(".")[2]
        names = [each.name for each in parsed.file.message_type]
        indexes = (names.index(wanted) if wanted in names else 0,)
        return ProtobufEncoder(message_class(parsed, indexes), indexes, schema, self._options)

    def decoder(
        self, found: RegistrySchema, references: Sequence[ResolvedReference], indexes: tuple[int, ...]
    ) -> ProtobufDecoder:
        kind = message_class(parse(found.text, references), indexes)
        return ProtobufDecoder(kind, self._options)


def message_class(parsed: ProtobufSchema, indexes: tuple[int, ...]) -> Any:
    from google.protobuf.message_factory import GetMessageClass

    name = parsed.message_name(indexes)
    return GetMessageClass(parsed.pool.FindMessageTypeByName(name))


class ProtobufEncoder:
    def __init__(self, kind: Any, indexes: tuple[int, ...], schema: Schema, options: ProtobufOptions) -> None:
        self.indexes = indexes
        self._kind = kind
        self._schema = schema
        self._options = options

    def encode(self, value: Any) -> bytes:
        message = self._kind()
        if self._schema.type is Type.STRUCT:
            self._fill(message, value, self._schema)
        else:
            message.value = value
        made: bytes = message.SerializeToString(deterministic=True)
        return made

    def _fill(self, message: Any, value: Any, schema: Schema) -> None:
        fields = message.DESCRIPTOR.fields_by_name
        for one in schema.fields:
            given = value.get(one.name)
            given = one.schema.default if given is None else given
            if given is None:
                continue
            name = scrubbed(one.name) if self._options.scrubs else one.name
            field = fields.get(name)
            if is_union(one.schema):
                self._fill(message, given, one.schema)
            elif field is not None:  # the latest schema may not have it
                self._put(message, field, given, one.schema)

    def _put(self, message: Any, field: Any, value: Any, schema: Schema) -> None:
        name = field.name
        if is_map(field):
            assert schema.value is not None
            target, item = getattr(message, name), field.message_type.fields_by_name["value"]
            for key, each in value.items():
                if item.message_type is not None:
                    self._copy(target[key], each, schema.value)
                else:
                    target[key] = scalar(item, each)
        elif field.is_repeated:
            assert schema.value is not None
            target = getattr(message, name)
            for each in value:
                if field.message_type is not None:
                    self._copy(target.add(), each, schema.value)
                else:
                    target.append(scalar(field, each))
        elif field.message_type is not None:
            target = getattr(message, name)
            target.SetInParent()
            self._copy(target, value, schema)
        else:
            setattr(message, name, scalar(field, value))

    def _copy(self, target: Any, value: Any, schema: Schema) -> None:
        descriptor = target.DESCRIPTOR
        match descriptor.full_name:
            case name if name == DECIMAL:
                target.value = decimal_bytes(value, schema.scale)
                target.scale = schema.scale
                target.precision = len(value.as_tuple().digits)
            case name if name == DATE_MESSAGE:
                target.year, target.month, target.day = value.year, value.month, value.day
            case name if name == TIME_MESSAGE:
                target.hours, target.minutes, target.seconds = value.hour, value.minute, value.second
                target.nanos = value.microsecond * 1000
            case name if name == TIMESTAMP_MESSAGE:
                passed = (value - EPOCH) // dt.timedelta(milliseconds=1)
                target.seconds, target.nanos = passed // 1000, passed % 1000 * 1_000_000
            case _ if descriptor.file.name == WRAPPER_FILE:
                target.value = value
            case _:
                self._fill(target, value, schema)


def scalar(field: Any, value: Any) -> Any:
    """A value for a field; symbols of enums become numbers."""
    if field.enum_type is not None and isinstance(value, str):
        found = field.enum_type.values_by_name.get(value)
        if found is None:
            raise DataError(f"{value!r} is no symbol of the enum {field.enum_type.full_name}")
        return found.number
    return value


class ProtobufDecoder:
    def __init__(self, kind: Any, options: ProtobufOptions) -> None:
        self._kind = kind
        self._options = options
        self.schema = OfProtobuf(options).root(kind.DESCRIPTOR)
        self._read: Read = lambda message: message.value
        if self.schema.type is Type.STRUCT:
            self._read = self._message(kind.DESCRIPTOR, self.schema)

    def decode(self, payload: bytes) -> Any:
        message = self._kind()
        message.ParseFromString(payload)
        return self._read(message)

    def _message(self, descriptor: Any, schema: Schema) -> Read:
        parts: list[tuple[str, Read]] = []
        for one in schema.fields:
            field = descriptor.fields_by_name.get(one.name)
            if is_union(one.schema):
                group = next(
                    each for each in descriptor.oneofs if self._options.union_field(each) == one.name
                )
                parts.append((one.name, self._sum(group, one.schema)))
            else:
                parts.append((one.name, self._field(field, one.schema)))
        return lambda message: {name: read(message) for name, read in parts}

    def _sum(self, group: Any, schema: Schema) -> Read:
        readers = {field.name: self._one(field, schema.field(field.name)) for field in group.fields}
        names = schema.field_names

        def read_sum(message: Any) -> Any:
            chosen = message.WhichOneof(group.name)
            if chosen is None:
                return None
            return {**dict.fromkeys(names), chosen: readers[chosen](getattr(message, chosen))}

        return read_sum

    def _field(self, field: Any, schema: Schema) -> Read:
        name = field.name
        if is_map(field):
            item = self._one(field.message_type.fields_by_name["value"], schema.value)
            return lambda message: {key: item(each) for key, each in getattr(message, name).items()}
        if field.is_repeated:
            item = self._one(field, schema.value)
            return lambda message: [item(each) for each in getattr(message, name)]
        read = self._one(field, schema)
        if field.has_presence:
            return lambda message: read(getattr(message, name)) if message.HasField(name) else None
        return lambda message: read(getattr(message, name))

    def _one(self, field: Any, schema: Schema | None) -> Read:
        assert schema is not None
        message = field.message_type
        if message is None:
            if field.enum_type is not None and schema.type is Type.STRING:
                names = {number: one.name for number, one in field.enum_type.values_by_number.items()}
                return lambda value: names.get(value, str(value))
            return lambda value: value
        known: dict[str, Read] = {
            DECIMAL: lambda value: decimal_of_bytes(value.value, value.scale),
            DATE_MESSAGE: lambda value: dt.date(value.year, value.month, value.day),
            TIME_MESSAGE: lambda value: dt.time(
                value.hours, value.minutes, value.seconds, value.nanos // 1000
            ),
            TIMESTAMP_MESSAGE: lambda value: (
                EPOCH + dt.timedelta(seconds=value.seconds, milliseconds=value.nanos // 1_000_000)
            ),
        }
        if message.full_name in known:
            return known[message.full_name]
        if message.file.name == WRAPPER_FILE and schema.type is not Type.STRUCT:
            return lambda value: value.value
        return self._message(message, schema)
