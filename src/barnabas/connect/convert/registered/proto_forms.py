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


@dataclass(frozen=True, slots=True)
class ProtobufOptions:
    optionals: bool = False  # optional.for.nullables
    wrappers: bool = False  # wrapper.for.nullables
    scrubs: bool = False  # scrub.invalid.names
    enum_numbers: bool = False  # int.for.enums
    metadata: bool = True  # connect.meta.data
    raw: bool = True  # wrapper.for.raw.primitives


def scrubbed(name: str) -> str:
    found = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"x{found}" if found[:1].isdigit() else found


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
        used: set[int] = set()
        for number, one in enumerate(schema.fields, 1):
            tag = int(one.schema.parameters.get(TAG, number))
            while tag in used:
                tag += 1
            used.add(tag)
            lines += self._field(one, tag, depth)
        return [f"message {name} {{", *(f"  {line}" for line in lines), "}"]

    def _field(self, one: Field, tag: int, depth: int) -> list[str]:
        name, schema = self._named(one.name), one.schema
        nested: list[str] = []
        label, item = "", schema
        if schema.type is Type.ARRAY:
            assert schema.value is not None
            label, item = "repeated ", schema.value
            if item.type in (Type.ARRAY, Type.MAP):
                raise DataError(f"field {one.name} is a list of lists or maps: Protobuf has no such type")
        if schema.type is Type.MAP:
            assert schema.key is not None and schema.value is not None
            if schema.key.type not in (
                Type.STRING,
                Type.BOOLEAN,
                Type.INT8,
                Type.INT16,
                Type.INT32,
                Type.INT64,
            ):
                raise DataError(f"field {one.name} is a map by {schema.key.type}: Protobuf has no such keys")
            if schema.value.type in (Type.ARRAY, Type.MAP):
                raise DataError(f"field {one.name} is a map of lists or maps: Protobuf has no such type")
            value, nested = self._type(f"{name}_value", schema.value, depth)
            kind = f"map<{PLAIN[schema.key.type]}, {value}>"
        else:
            kind, nested = self._type(name, item, depth)
            is_scalar = item.type in PLAIN and item.logical is None
            if schema.optional and is_scalar and not label:
                if self._options.wrappers:
                    self._imports.add(WRAPPER_FILE)
                    kind = f"google.protobuf.{WRAPPERS[item.type]}"
                elif self._options.optionals:
                    label = "optional "
        described = schema.value if schema.type is Type.MAP and schema.value is not None else item
        return [*nested, f"{label}{kind} {name} = {tag}{self._meta(described)};"]

    def _type(self, name: str, schema: Schema, depth: int) -> tuple[str, list[str]]:
        if schema.logical is not None:
            kind = LOGICAL[schema.logical]
            self._imports.add(FILES[kind])
            return f".{kind}", []
        if schema.type is Type.STRUCT:
            inner = (
                f"{name[:1].upper()}{name[1:]}Struct"
                if schema.name is None
                else self._named(schema.name.rpartition(".")[2])
            )
            return inner, self._message(inner, schema, depth + 1)
        return PLAIN[schema.type], []

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
                    fields.append(Field(sum_name(one_of), self._sum(one_of, depth)))
                continue
            fields.append(Field(field.name, self.field(field, depth)))
        return Schema(type=Type.STRUCT, name=descriptor.full_name, fields=tuple(fields))

    def _sum(self, one_of: Any, depth: int) -> Schema:
        parts = tuple(Field(field.name, self._one(field, depth).as_optional()) for field in one_of.fields)
        return Schema(type=Type.STRUCT, name=sum_name(one_of), fields=parts, optional=True)

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
            if self._options.enum_numbers:
                return Schema(type=Type.INT32)
            symbols = {f"{ENUM}.{one.name}": str(one.number) for one in field.enum_type.values}
            return Schema(type=Type.STRING, parameters={ENUM: field.enum_type.name, **symbols})
        found = BY_NUMBER[field.type]
        declared = meta.get(KIND)
        small = {"int8": Type.INT8, "int16": Type.INT16}.get(declared or "")
        return Schema(type=small or found)

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


def sum_name(one_of: Any) -> str:
    return f"{one_of.name}_{one_of.index}"


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
