"""Turns a descriptor back into declarations, as they come or in normal form.

In: a FileDescriptorProto, and a pool that knows it and its imports. Out: a syntax.File.
The normal form sorts what has no order of its own (imports, options, fields by number, values of enums,
reserved numbers) and leaves out what says nothing (the syntax line of proto2, default JSON names); messages
keep their order. As they come, map fields are what a descriptor makes of them: repeated fields of entries.
Does not know: text, references.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool

from barnabas.schemas.model import InvalidSchema
from barnabas.schemas.protobuf.defaults import default_value, real_text
from barnabas.schemas.protobuf.extending import read_options
from barnabas.schemas.protobuf.names import qualified
from barnabas.schemas.protobuf.option_reading import whole_number
from barnabas.schemas.protobuf.options import real
from barnabas.schemas.protobuf.syntax import (
    DEPTH_MAX,
    EDITIONS,
    Braces,
    Enum,
    EnumValue,
    Extend,
    Extensions,
    Field,
    File,
    Import,
    Label,
    Many,
    Message,
    Method,
    NamePart,
    Number,
    OneOf,
    Option,
    Range,
    Reserved,
    Service,
    Text,
    Value,
)

_LABELS = {
    FieldDescriptorProto.LABEL_OPTIONAL: Label.OPTIONAL,
    FieldDescriptorProto.LABEL_REQUIRED: Label.REQUIRED,
    FieldDescriptorProto.LABEL_REPEATED: Label.REPEATED,
}


class Renderer:
    def __init__(self, file: FileDescriptorProto, pool: DescriptorPool, *, normal: bool) -> None:
        self._file = file
        self._pool = pool
        self._normal = normal
        self._proto2 = file.syntax in ("", "proto2")

    def render(self) -> File:
        file = self._file
        edition = _edition(file) if file.syntax == "editions" else None
        syntax = file.syntax if edition is None and file.syntax else None
        if self._normal and syntax == "proto2":
            syntax = None
        groups = self._groups(file.package, file.message_type, file.extension)
        return File(
            syntax,
            edition,
            file.package,
            self._imports(),
            self._options(file.options),
            tuple(self._message(one, file.package, 1) for one in file.message_type if one.name not in groups),
            tuple(self._enum(one) for one in file.enum_type),
            self._extends(file.extension, file.package, file.message_type, 1),
            tuple(self._service(one) for one in file.service),
        )

    def _imports(self) -> tuple[Import, ...]:
        file = self._file
        kinds = dict.fromkeys(file.weak_dependency, "weak") | dict.fromkeys(file.public_dependency, "public")
        found = [Import(path, kinds.get(index, "")) for index, path in enumerate(file.dependency)]
        return tuple(sorted(set(found), key=lambda one: (one.kind, one.path)) if self._normal else found)

    def _message(self, message: DescriptorProto, scope: str, depth: int) -> Message:
        if depth > DEPTH_MAX:
            raise InvalidSchema(f"messages are nested more than {DEPTH_MAX} deep, at {message.name!r}")
        full_name = qualified(scope, message.name)
        maps = self._maps(message, full_name)
        groups = self._groups(full_name, message.nested_type, (*message.field, *message.extension))
        plain: list[Field] = []
        in_oneofs: list[list[Field]] = [[] for _ in message.oneof_decl]
        for one in message.field:
            if one.HasField("oneof_index") and not one.proto3_optional:
                if not 0 <= one.oneof_index < len(in_oneofs):
                    raise InvalidSchema(f"field {one.name!r} is in no oneof of {full_name!r}")
                target = in_oneofs[one.oneof_index]
                target.append(self._field(one, None, maps, full_name, message.nested_type, depth))
            else:
                plain.append(self._field(one, self._label(one), maps, full_name, message.nested_type, depth))
        oneofs = [
            OneOf(oneof.name, self._by_number(fields), self._options(oneof.options))
            for oneof, fields in zip(message.oneof_decl, in_oneofs, strict=True)
            if fields
        ]
        if self._normal:
            oneofs.sort(key=lambda one: one.fields[0].number)
        hidden = groups | set(maps)
        return Message(
            message.name,
            self._by_number(plain),
            tuple(oneofs),
            tuple(
                self._message(one, full_name, depth + 1)
                for one in message.nested_type
                if one.name not in hidden
            ),
            tuple(self._enum(one) for one in message.enum_type),
            self._options(message.options),
            self._reserved(
                ((one.start, one.end - 1) for one in message.reserved_range), message.reserved_name
            ),
            self._extension_ranges(message),
            self._extends(message.extension, full_name, message.nested_type, depth),
        )

    def _maps(self, message: DescriptorProto, full_name: str) -> dict[str, DescriptorProto]:
        """Entry types that print as maps, by name: in normal form only."""
        if not self._normal:
            return {}
        used = {field.type_name for field in message.field}
        return {
            one.name: one
            for one in message.nested_type
            if one.options.map_entry and len(one.field) == 2 and f".{full_name}.{one.name}" in used
        }

    def _groups(
        self, scope: str, messages: Iterable[DescriptorProto], fields: Iterable[FieldDescriptorProto]
    ) -> set[str]:
        """Names of the messages that groups declare."""
        used = {field.type_name for field in fields if field.type == FieldDescriptorProto.TYPE_GROUP}
        if not used or not self._proto2:
            return set()
        return {one.name for one in messages if f".{qualified(scope, one.name)}" in used}

    def _field(
        self,
        field: FieldDescriptorProto,
        label: Label | None,
        maps: dict[str, DescriptorProto],
        scope: str,
        siblings: Iterable[DescriptorProto],
        depth: int,
    ) -> Field:
        options = [*self._options(field.options)]
        if field.HasField("default_value"):
            options.append(Option((NamePart("default"),), default_value(field)))
        if field.json_name and not (self._normal and field.json_name == json_name(field.name)):
            options.append(Option((NamePart("json_name"),), Text(field.json_name.encode())))
        if self._normal:
            options.sort(key=_option_key)
        given = tuple(options)
        if field.type == FieldDescriptorProto.TYPE_GROUP and self._proto2:
            bodies = [one for one in siblings if f".{qualified(scope, one.name)}" == field.type_name]
            if bodies:
                body = self._message(bodies[0], scope, depth + 1)
                return Field(field.name, field.number, body.name, label, None, body, given)
        entry = maps.get(field.type_name.rpartition(".")[2])
        if entry is not None and field.type_name == f".{qualified(scope, entry.name)}":
            key, value = sorted(entry.field, key=lambda one: one.number)
            return Field(field.name, field.number, _type(value), None, _type(key), None, given)
        return Field(field.name, field.number, _type(field), label, None, None, given)

    def _label(self, field: FieldDescriptorProto) -> Label | None:
        if field.proto3_optional:
            return Label.OPTIONAL
        if field.label == FieldDescriptorProto.LABEL_REPEATED or self._proto2:
            return _LABELS[field.label] if field.HasField("label") else None
        return None

    def _by_number(self, fields: list[Field]) -> tuple[Field, ...]:
        return tuple(sorted(fields, key=lambda one: one.number) if self._normal else fields)

    def _extends(
        self,
        extensions: Sequence[FieldDescriptorProto],
        scope: str,
        siblings: Iterable[DescriptorProto],
        depth: int,
    ) -> tuple[Extend, ...]:
        by_extendee: dict[str, list[Field]] = {}
        for one in extensions:
            field = self._field(one, self._label(one), {}, scope, siblings, depth)
            by_extendee.setdefault(one.extendee, []).append(field)
        return tuple(Extend(extendee, self._by_number(fields)) for extendee, fields in by_extendee.items())

    def _extension_ranges(self, message: DescriptorProto) -> tuple[Extensions, ...]:
        found = [
            Extensions(
                (Range(one.start, one.end - 1, single=one.start == one.end - 1),), self._options(one.options)
            )
            for one in message.extension_range
        ]
        return tuple(sorted(found, key=lambda one: one.ranges[0].start) if self._normal else found)

    def _reserved(self, ranges: Iterable[tuple[int, int]], names: Iterable[str]) -> tuple[Reserved, ...]:
        """One statement for each range and name, as registries print descriptors."""
        numbers = [Range(start, end, single=start == end) for start, end in ranges]
        words = list(names)
        if self._normal:
            numbers.sort(key=lambda one: one.start)
            words.sort()
        return (*(Reserved(ranges=(one,)) for one in numbers), *(Reserved(names=(one,)) for one in words))

    def _enum(self, enum: EnumDescriptorProto) -> Enum:
        values = [EnumValue(one.name, one.number, self._options(one.options)) for one in enum.value]
        if self._normal:
            values.sort(key=lambda one: (one.number, one.name))
        reserved = self._reserved(((one.start, one.end) for one in enum.reserved_range), enum.reserved_name)
        return Enum(enum.name, tuple(values), self._options(enum.options), reserved)

    def _service(self, service: ServiceDescriptorProto) -> Service:
        methods = [
            Method(
                one.name,
                one.input_type,
                one.output_type,
                one.client_streaming,
                one.server_streaming,
                self._options(one.options),
            )
            for one in service.method
        ]
        return Service(service.name, tuple(methods), self._options(service.options))

    def _options(self, options: Any) -> tuple[Option, ...]:
        found = list(read_options(options, self._pool)) if options.ByteSize() else []
        if self._normal:
            found = sorted((Option(one.name, _normal(one.value)) for one in found), key=_option_key)
        return tuple(found)


def _edition(file: FileDescriptorProto) -> str:
    for name, number in EDITIONS.items():
        if number == file.edition:
            return name
    raise InvalidSchema(f"unknown edition {file.edition}, known are {', '.join(EDITIONS)}")


def _option_key(option: Option) -> str:
    return ".".join(part.text for part in option.name)


def _normal(value: Value) -> Value:
    """Keys sorted, empty lists left out, a list of one is its element, numbers in one writing."""
    if isinstance(value, Many):
        values = tuple(_normal(one) for one in value.values)
        return values[0] if len(values) == 1 else Many(values)
    if isinstance(value, Braces):
        entries = [(key, _normal(one)) for key, one in value.entries if one != Many(())]
        return Braces(tuple(sorted(entries, key=lambda one: one[0])))
    if isinstance(value, Number):
        number = whole_number(value.text.removeprefix("-"))
        if number is None:
            return Number(real_text(real(value), single=False))
        return Number(f"{'-' if value.text.startswith('-') else ''}{number}")
    return value


def _type(field: FieldDescriptorProto) -> str:
    return str(field.type_name) or FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def json_name(name: str) -> str:
    """The JSON name that a field has by default: foo_bar is fooBar."""
    return re.sub("_+([^_]?)", lambda match: match.group(1).upper(), name)
