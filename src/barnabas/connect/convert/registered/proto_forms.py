"""Connect's schemas as Protobuf files, and back, as Confluent's converter maps them.

In: a schema, or the descriptor of a message. Out: the text of a file with one message, or a schema. Protobuf
has no int8 and int16, no names of other types and no versions: `(confluent.field_meta)` holds what is lost.
Does not know: values, registries.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from barnabas.connect.convert.registered.sums import GENERAL_ENUM, GENERAL_UNION
from barnabas.connect.data import DataError, Schema
from barnabas.connect.data.schema import (
    DATE,
    DATE_NAME,
    DECIMAL_NAME,
    SCALE,
    TIME,
    TIME_NAME,
    TIMESTAMP,
    TIMESTAMP_NAME,
    Field,
    Type,
)

DEFAULT_NAME = "ConnectDefault"
TAG = "io.confluent.connect.protobuf.Tag"
ENUM = "io.confluent.connect.protobuf.Enum"
NUMBER_KIND = "io.confluent.connect.protobuf.Type"
UNION = "io.confluent.connect.protobuf.Union."
KIND = "connect.type"
PRECISION = "connect.decimal.precision"
DEPTH_MAX = 60
DECIMAL, TIME_MESSAGE = "confluent.type.Decimal", "google.type.TimeOfDay"
DATE_MESSAGE, TIMESTAMP_MESSAGE = "google.type.Date", "google.protobuf.Timestamp"
FILES = {
    DECIMAL: "confluent/type/decimal.proto",
    DATE_MESSAGE: "google/type/date.proto",
    TIME_MESSAGE: "google/type/timeofday.proto",
    TIMESTAMP_MESSAGE: "google/protobuf/timestamp.proto",
}
LOGICAL = {
    DECIMAL_NAME: DECIMAL,
    DATE_NAME: DATE_MESSAGE,
    TIME_NAME: TIME_MESSAGE,
    TIMESTAMP_NAME: TIMESTAMP_MESSAGE,
}
PLAIN = {
    Type.INT8: "int32",
    Type.INT16: "int32",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "bool",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
WRAPPERS = {
    Type.INT8: "Int32Value",
    Type.INT16: "Int32Value",
    Type.INT32: "Int32Value",
    Type.INT64: "Int64Value",
    Type.FLOAT32: "FloatValue",
    Type.FLOAT64: "DoubleValue",
    Type.BOOLEAN: "BoolValue",
    Type.STRING: "StringValue",
    Type.BYTES: "BytesValue",
}
WRAPPER_FILE, WRAPPER_PACKAGE = "google/protobuf/wrappers.proto", "google.protobuf"
WRAPPED = {
    "DoubleValue": Type.FLOAT64, "FloatValue": Type.FLOAT32, "Int64Value": Type.INT64,
    "UInt64Value": Type.INT64, "Int32Value": Type.INT32, "UInt32Value": Type.INT64,
    "BoolValue": Type.BOOLEAN, "StringValue": Type.STRING, "BytesValue": Type.BYTES,
}  # fmt: skip


KEYS = (Type.STRING, Type.BOOLEAN, Type.INT8, Type.INT16, Type.INT32, Type.INT64)
Definitions = dict[str, list[str]]  # messages and enums inside of a message, by name


@dataclass(frozen=True, slots=True)
class ProtobufOptions:
    optionals: bool = False  # optional.for.nullables
    wrappers: bool = False  # wrapper.for.nullables
    scrubs: bool = False  # scrub.invalid.names
    enum_numbers: bool = False  # int.for.enums
    metadata: bool = True  # connect.meta.data
    raw: bool = True  # wrapper.for.raw.primitives
    packages: bool = False  # enhanced.protobuf.schema.support
    union_index: bool = True  # generate.index.for.unions
    generalized: bool = False  # generalized.sum.type.support

    def union_field(self, one_of: Any) -> str:
        """The name of the field that holds a union."""
        return f"{one_of.name}_{one_of.index}" if self.union_index else str(one_of.name)


def scrubbed(name: str) -> str:
    found = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"x{found}" if found[:1].isdigit() else found


def is_union(schema: Schema) -> bool:
    return GENERAL_UNION in schema.parameters or (schema.name or "").startswith(UNION)


def is_enum(schema: Schema) -> bool:
    return schema.type in (Type.STRING, Type.INT32) and (
        ENUM in schema.parameters or GENERAL_ENUM in schema.parameters
    )


def define(inner: Definitions, name: str, lines: list[str]) -> None:
    """Add a type to those inside of a message. Fields of one type share it."""
    if inner.setdefault(name, lines) != lines:
        raise DataError(f"two types that differ are both called {name}: Protobuf needs a name for each")


def wrapper_file() -> str:
    """Google's file of wrappers, under which values that are no structs are registered."""
    lines = ['syntax = "proto3";', f"package {WRAPPER_PACKAGE};"]
    for name, kind in WRAPPED.items():
        plain = name.removesuffix("Value").lower() if name.startswith("UInt") else PLAIN[kind]
        lines.append(f"message {name} {{ {plain} value = 1; }}")
    return "\n".join(lines) + "\n"


def wrapped_type(descriptor: Any) -> Type | None:
    """The type of the value that a wrapper of Google's holds."""
    return WRAPPED.get(descriptor.name) if descriptor.file.package == WRAPPER_PACKAGE else None


class ToProtobuf:
    """One translation: the text of a file whose first message is the schema."""

    def __init__(self, options: ProtobufOptions) -> None:
        self._options = options
        self._imports: set[str] = set()

    def file(self, schema: Schema) -> tuple[str, str]:
        """The text, and the full name of its message."""
        if schema.type in PLAIN and schema.logical is None:
            return wrapper_file(), f"{WRAPPER_PACKAGE}.{WRAPPERS[schema.type]}"
        package, _, short = (schema.name or DEFAULT_NAME).rpartition(".")
        if schema.type is not Type.STRUCT:
            kind = schema.logical or schema.type
            raise DataError(f"a {kind} is no Protobuf message: use HoistField to make a struct of it")
        body = self._message(self._named(short), schema, 0)
        lines = ['syntax = "proto3";']
        if package:
            lines.append(f"package {'.'.join(self._named(part) for part in package.split('.'))};")
        lines += [f'import "{path}";' for path in sorted(self._imports)]
        full = f"{'.'.join(self._named(part) for part in package.split('.'))}." if package else ""
        return "\n".join([*lines, *body]) + "\n", full + self._named(short)

    def _named(self, name: str) -> str:
        return scrubbed(name) if self._options.scrubs else name

    def _message(self, name: str, schema: Schema, depth: int) -> list[str]:
        if depth > DEPTH_MAX:
            raise DataError(f"the schema is nested more than {DEPTH_MAX} levels deep")
        lines: list[str] = []
        inner: Definitions = {}
        used: set[int] = set()
        number = 0
        for one in schema.fields:
            parts = one.schema.fields if is_union(one.schema) else (one,)
            made: list[str] = []
            for part in parts:
                number += 1
                tag = int(part.schema.parameters.get(TAG, number))
                while tag in used:
                    tag += 1
                used.add(tag)
                made.append(self._field(part, tag, depth, inner, in_union=parts != (one,)))
            if parts != (one,):
                made = [f"oneof {self._union_name(one.schema)} {{", *(f"  {line}" for line in made), "}"]
            lines += made
        definitions = [line for each in inner.values() for line in each]
        return [f"message {name} {{", *(f"  {line}" for line in [*definitions, *lines]), "}"]

    def _union_name(self, schema: Schema) -> str:
        given = schema.parameters.get(GENERAL_UNION) or (schema.name or "").removeprefix(UNION)
        return self._named(given.rpartition(".")[2])

    def _field(self, one: Field, tag: int, depth: int, inner: Definitions, *, in_union: bool) -> str:
        """The line of a field. Types that it needs are added to those inside of the message."""
        name, schema = self._named(one.name), one.schema
        label, item = "", schema
        if schema.type is Type.ARRAY:
            assert schema.value is not None
            label, item = "repeated ", schema.value
            if item.type in (Type.ARRAY, Type.MAP):
                raise DataError(f"field {one.name} is a list of lists or maps: Protobuf has no such type")
        if schema.type is Type.MAP:
            assert schema.key is not None and schema.value is not None
            if schema.key.type not in KEYS:
                raise DataError(f"field {one.name} is a map by {schema.key.type}: Protobuf has no such keys")
            if schema.value.type in (Type.ARRAY, Type.MAP):
                raise DataError(f"field {one.name} is a map of lists or maps: Protobuf has no such type")
            kind = f"map<{PLAIN[schema.key.type]}, {self._type(f'{name}_value', schema.value, depth, inner)}>"
        else:
            kind = self._type(name, item, depth, inner)
            is_scalar = item.type in PLAIN and item.logical is None and not is_enum(item)
            if schema.optional and is_scalar and not label and not in_union:
                if self._options.wrappers:
                    self._imports.add(WRAPPER_FILE)
                    kind = f"google.protobuf.{WRAPPERS[item.type]}"
                elif self._options.optionals:
                    label = "optional "
        described = schema.value if schema.type is Type.MAP and schema.value is not None else item
        return f"{label}{kind} {name} = {tag}{self._meta(described)};"

    def _type(self, name: str, schema: Schema, depth: int, inner: Definitions) -> str:
        if schema.logical is not None:
            kind = LOGICAL[schema.logical]
            self._imports.add(FILES[kind])
            return f".{kind}"
        if schema.type is Type.STRUCT:
            short = (
                f"{name[:1].upper()}{name[1:]}Struct"
                if schema.name is None
                else self._named(schema.name.rpartition(".")[2])
            )
            short += "Message" * (short == name)
            define(inner, short, self._message(short, schema, depth + 1))
            return short
        if is_enum(schema):
            word = GENERAL_ENUM if GENERAL_ENUM in schema.parameters else ENUM
            short = self._named(schema.parameters[word].rpartition(".")[2])
            short += "Enum" * (short == name)
            symbols = {
                each.removeprefix(f"{word}."): int(number)
                for each, number in schema.parameters.items()
                if each.startswith(f"{word}.")
            }
            ordered = sorted(symbols.items(), key=lambda each: (each[1] != 0, each[1]))
            define(inner, short, [f"enum {short} {{", *(f"  {k} = {v};" for k, v in ordered), "}"])
            return short
        return schema.parameters.get(NUMBER_KIND, PLAIN[schema.type])

    def _meta(self, schema: Schema) -> str:
        found = {}
        if schema.type in (Type.INT8, Type.INT16):
            found[KIND] = str(schema.type)
        if schema.logical == DECIMAL_NAME:
            found[SCALE] = schema.parameters[SCALE]
            if PRECISION in schema.parameters:
                found["precision"] = schema.parameters[PRECISION]
        if not found or not self._options.metadata:
            return ""
        self._imports.add("confluent/meta.proto")
        params = ", ".join(f"{{key: {json.dumps(k)}, value: {json.dumps(v)}}}" for k, v in found.items())
        return f" [(confluent.field_meta) = {{params: [{params}]}}]"


class OfProtobuf:
    """Reads descriptors of messages."""

    def __init__(self, options: ProtobufOptions) -> None:
        self._options = options

    def root(self, descriptor: Any) -> Schema:
        """The schema of a payload: that of a wrapper is its value's."""
        wrapped = wrapped_type(descriptor) if self._options.raw else None
        return self.message(descriptor) if wrapped is None else Schema(type=wrapped)

    def message(self, descriptor: Any, depth: int = 0) -> Schema:
        if depth > DEPTH_MAX:
            raise DataError(f"message {descriptor.full_name} contains itself: Connect has no such type")
        fields = []
        for field in descriptor.fields:
            one_of = field.containing_oneof
            if one_of is not None and not is_synthetic(one_of):
                if field is one_of.fields[0]:
                    fields.append(Field(self._options.union_field(one_of), self._union(one_of, depth)))
                continue
            fields.append(Field(field.name, self.field(field, depth)))
        return Schema(type=Type.STRUCT, name=self._name(descriptor), fields=tuple(fields))

    def _name(self, descriptor: Any) -> str:
        return str(descriptor.full_name if self._options.packages else descriptor.name)

    def _union(self, one_of: Any, depth: int) -> Schema:
        parts = tuple(Field(field.name, self.field(field, depth).as_optional()) for field in one_of.fields)
        found = Schema(type=Type.STRUCT, fields=parts, optional=True)
        if self._options.generalized:
            return replace(found, name=one_of.name, parameters={GENERAL_UNION: one_of.name})
        return replace(found, name=UNION + self._name(one_of))

    def field(self, field: Any, depth: int) -> Schema:
        tag = {TAG: str(field.number)}
        if is_map(field):
            key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            return Schema(
                type=Type.MAP,
                key=self._one(key, depth),
                value=self._one(value, depth, meta_of(field)),
                parameters=tag,
            )
        found = self._one(field, depth)
        if field.is_repeated:
            return Schema(type=Type.ARRAY, value=found, parameters=tag)
        is_message = field.message_type is not None
        optional = is_message or not self._options.optionals or field.has_presence
        return replace(found, optional=optional, parameters={**found.parameters, **tag})

    def _one(self, field: Any, depth: int, given: dict[str, str] | None = None) -> Schema:
        meta = meta_of(field) if given is None else given
        message = field.message_type
        if message is not None:
            return self._of_message(message, meta, depth)
        if field.enum_type is not None:
            kind, word = field.enum_type, GENERAL_ENUM if self._options.generalized else ENUM
            symbols = {f"{word}.{one.name}": str(one.number) for one in kind.values}
            type_ = Type.INT32 if self._options.enum_numbers else Type.STRING
            return Schema(type=type_, name=self._name(kind), parameters={word: kind.name, **symbols})
        found = BY_NUMBER[field.type]
        declared = meta.get(KIND)
        small = {"int8": Type.INT8, "int16": Type.INT16}.get(declared or "")
        kept = {NUMBER_KIND: OTHER_NUMBERS[field.type]} if field.type in OTHER_NUMBERS else {}
        return Schema(type=small or found, parameters={} if small else kept)

    def _of_message(self, message: Any, meta: dict[str, str], depth: int) -> Schema:
        name = message.full_name
        if name == DECIMAL:
            parameters = {SCALE: meta.get(SCALE, "0")}
            if "precision" in meta:
                parameters[PRECISION] = meta["precision"]
            return Schema(type=Type.BYTES, name=DECIMAL_NAME, version=1, parameters=parameters)
        for known, schema in ((DATE_MESSAGE, DATE), (TIME_MESSAGE, TIME), (TIMESTAMP_MESSAGE, TIMESTAMP)):
            if name == known:
                return schema
        if message.file.name == WRAPPER_FILE and self._options.wrappers:
            return Schema(type=WRAPPED[message.name], optional=True)
        return self.message(message, depth + 1)


def is_map(field: Any) -> bool:
    return bool(
        field.is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry
    )


def is_synthetic(one_of: Any) -> bool:
    """The group that the compiler makes for a field with the label `optional`."""
    return len(one_of.fields) == 1 and one_of.name.startswith("_")


def meta_of(field: Any) -> dict[str, str]:
    """The parameters of `(confluent.field_meta)`."""
    from google.protobuf.message_factory import GetMessageClass

    data = field.GetOptions().SerializeToString()
    if not data:
        return {}
    try:
        known = field.file.pool.FindMessageTypeByName("google.protobuf.FieldOptions")
    except KeyError:  # no file of the schema declares options
        return {}
    # The class of the schema's own pool knows the extension.
    for extension, value in GetMessageClass(known).FromString(data).ListFields():
        if extension.full_name == "confluent.field_meta":
            return dict(value.params)
    return {}


BY_NUMBER = {
    1: Type.FLOAT64, 2: Type.FLOAT32, 3: Type.INT64, 4: Type.INT64, 5: Type.INT32, 6: Type.INT64,
    7: Type.INT64, 8: Type.BOOLEAN, 9: Type.STRING, 12: Type.BYTES, 13: Type.INT64, 15: Type.INT32,
    16: Type.INT64, 17: Type.INT32, 18: Type.INT64,
}  # fmt: skip
OTHER_NUMBERS = {4: "uint64", 6: "fixed64", 7: "fixed32", 13: "uint32", 15: "sfixed32", 16: "sfixed64",
                 17: "sint32", 18: "sint64"}  # fmt: skip
