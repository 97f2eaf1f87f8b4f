"""Makes the descriptor of a .proto file, and refuses what no compiler takes.

In: a syntax.File and the files that it imports. Out: a FileDescriptorProto with full names, or InvalidSchema
that names the line. Options that are extensions wait in `pending`: extending.py sets them.
Does not know: text, tokens, how a schema compares.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)

from barnabas.schemas.model import InvalidSchema
from barnabas.schemas.protobuf.checks import Ranges, check_enum, check_message, check_name, check_number
from barnabas.schemas.protobuf.defaults import default_text
from barnabas.schemas.protobuf.files import Files
from barnabas.schemas.protobuf.names import Names, qualified
from barnabas.schemas.protobuf.options import Pending, refuse, set_options
from barnabas.schemas.protobuf.syntax import (
    EDITIONS,
    SCALARS,
    Enum,
    Extend,
    Field,
    File,
    Label,
    Message,
    Option,
    Range,
    Service,
    Text,
)

MAP_KEYS = SCALARS - {"double", "float", "bytes"}

_TYPES = {name: FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}") for name in SCALARS}
_LABELS = {label: FieldDescriptorProto.Label.Value(f"LABEL_{label.name}") for label in Label}
_OPTIONAL = FieldDescriptorProto.LABEL_OPTIONAL


class Describer:
    """Describes one file; made for one use."""

    def __init__(self, file: File, path: str, files: Files, *, strict: bool) -> None:
        self._file = file
        self._files = files
        self._strict = strict
        self._proto3 = file.syntax == "proto3"
        self._names = Names()
        self._symbols: dict[str, int] = {}  # full name -> line, of everything that the file declares
        self._ranges: dict[str, Ranges] = {}  # extension numbers of extended messages
        self.pending: list[Pending] = []
        self.out = FileDescriptorProto(name=path, package=file.package)

    def describe(self) -> FileDescriptorProto:
        file, out = self._file, self.out
        if file.package:
            for part in file.package.split("."):
                check_name(part, 0)
        if file.syntax == "proto3":
            out.syntax = "proto3"
        elif file.edition is not None:
            if file.edition not in EDITIONS:
                raise InvalidSchema(f"unknown edition {file.edition!r}, known are {', '.join(EDITIONS)}")
            out.syntax = "editions"
            out.edition = EDITIONS[file.edition]
        self._imports()
        # All names first: types may be used before they are declared.
        for message in file.messages:
            self._declare_message(message, file.package, out.message_type.add())
        for enum in file.enums:
            self._declare_enum(enum, file.package, out.enum_type.add())
        for message, described in zip(file.messages, out.message_type, strict=True):
            self._message(message, file.package, described)
        for enum, described_enum in zip(file.enums, out.enum_type, strict=True):
            self._enum(enum, file.package, described_enum)
        for extend in file.extends:
            self._extend(extend, file.package, out)
        for service in file.services:
            self._service(service, out.service.add())
        self._set_options(out, file.options, file.package)
        return out

    def _imports(self) -> None:
        places: dict[str, int] = {}
        for one in self._file.imports:
            loaded = self._files.load(one.path)
            if loaded is None:
                if self._strict:
                    raise refuse(one.line, f"import {one.path!r} is neither a reference nor a known file")
                continue  # stored schemas may have imports that only options needed
            if one.path not in places:
                places[one.path] = len(self.out.dependency)
                self.out.dependency.append(one.path)
            place = places[one.path]
            if one.kind == "public" and place not in self.out.public_dependency:
                self.out.public_dependency.append(place)
            elif one.kind == "weak" and place not in self.out.weak_dependency:
                self.out.weak_dependency.append(place)
        for file in self._files.visible(self.out.dependency):
            self._names.add_file(file)

    def _declare(self, scope: str, name: str, line: int) -> str:
        check_name(name, line)
        full_name = qualified(scope, name)
        if full_name in self._symbols:
            raise refuse(line, f"{full_name!r} is declared twice, first on line {self._symbols[full_name]}")
        self._symbols[full_name] = line
        return full_name

    def _declare_message(self, message: Message, scope: str, out: DescriptorProto) -> None:
        out.name = message.name
        full_name = self._declare(scope, message.name, message.line)
        self._names.add(full_name, out)
        for extensions in message.extensions:
            for numbers in extensions.ranges:
                out.extension_range.add(start=numbers.start, end=numbers.end + 1)
        for inner in message.messages:
            self._declare_message(inner, full_name, out.nested_type.add())
        for enum in message.enums:
            self._declare_enum(enum, full_name, out.enum_type.add())
        for field in _all_fields(message):
            if field.body is not None:
                self._declare_message(field.body, full_name, out.nested_type.add())
        for extend in message.extends:
            for field in extend.fields:
                if field.body is not None:
                    self._declare_message(field.body, full_name, out.nested_type.add())

    def _declare_enum(self, enum: Enum, scope: str, out: EnumDescriptorProto) -> None:
        out.name = enum.name
        self._names.add(self._declare(scope, enum.name, enum.line), out)
        for value in enum.values:
            self._declare(scope, value.name, value.line)  # values are siblings of their enum

    def _message(self, message: Message, scope: str, out: DescriptorProto) -> None:
        full_name = qualified(scope, message.name)
        check_message(message, self._proto3, self._strict)
        bodies = {inner.name: inner for inner in message.messages}
        for field in (*_all_fields(message), *(one for extend in message.extends for one in extend.fields)):
            if field.body is not None:
                bodies[field.body.name] = field.body
        for described in out.nested_type:
            self._message(bodies[described.name], full_name, described)
        for enum, described_enum in zip(message.enums, out.enum_type, strict=True):
            self._enum(enum, full_name, described_enum)
        for field in sorted(message.fields, key=lambda one: one.body is not None):  # as printed: groups last
            if field.body is None:
                self._field(field, full_name, out.field.add(), out)
        for oneof in message.oneofs:
            if oneof.fields:
                self._declare(full_name, oneof.name, oneof.line)
                described_oneof = out.oneof_decl.add(name=oneof.name)
                self._set_options(described_oneof, oneof.options, full_name)
                for field in sorted(oneof.fields, key=lambda one: one.body is not None):
                    described_field = out.field.add(oneof_index=len(out.oneof_decl) - 1)
                    self._field(field, full_name, described_field, out)
        for field in message.fields:
            if field.body is not None:
                self._field(field, full_name, out.field.add(), out)
        self._optional_oneofs(out)
        for reserved in message.reserved:
            for numbers in reserved.ranges:
                out.reserved_range.add(start=numbers.start, end=numbers.end + 1)
            out.reserved_name.extend(reserved.names)
        ranges = iter(out.extension_range)
        for extensions in message.extensions:
            for _, described_range in zip(extensions.ranges, ranges, strict=False):
                self._set_options(described_range, extensions.options, full_name)
        for extend in message.extends:
            self._extend(extend, full_name, out)
        self._set_options(out, message.options, full_name)

    def _optional_oneofs(self, out: DescriptorProto) -> None:
        """Fields of proto3 with the label optional are each alone in a oneof that nobody wrote."""
        taken = {field.name for field in out.field} | {oneof.name for oneof in out.oneof_decl}
        for field in out.field:
            if field.proto3_optional:
                name = f"_{field.name}"
                while name in taken:
                    name = f"X{name}"
                taken.add(name)
                field.oneof_index = len(out.oneof_decl)
                out.oneof_decl.add(name=name)

    def _field(
        self, field: Field, scope: str, out: FieldDescriptorProto, parent: DescriptorProto | None
    ) -> None:
        self._declare(scope, field.name, field.line)
        check_number(field.number, field.line)
        out.name = field.name
        out.number = field.number
        is_proto2 = not self._proto3 and self._file.edition is None
        if field.label is not None:
            out.label = _LABELS[field.label]
        elif not is_proto2 or out.HasField("oneof_index"):
            out.label = _OPTIONAL
        # Else it stays unset, which counts as optional: protoc asks for a label, other registries do not.
        if self._proto3 and field.label is Label.REQUIRED:
            raise refuse(field.line, f"field {field.name!r}: proto3 has no required fields")
        if self._file.edition is not None and field.label in (Label.REQUIRED, Label.OPTIONAL):
            raise refuse(field.line, f"field {field.name!r}: editions have no label {field.label}")
        if self._proto3 and field.label is Label.OPTIONAL:
            out.proto3_optional = True
        if field.key_type is not None:
            if parent is None:
                raise refuse(field.line, f"field {field.name!r}: a map cannot be an extension")
            self._map(field, scope, out, parent)
        elif field.body is not None:
            if self._proto3 or self._file.edition is not None:
                raise refuse(field.line, f"group {field.type!r}: only proto2 has groups")
            out.type = FieldDescriptorProto.TYPE_GROUP
            out.type_name = f".{qualified(scope, field.type)}"
        else:
            self._type(field.type, scope, out, field.line)
        options: list[Option] = []
        for option in field.options:
            if option.plain_name == "default":
                self._default(option, field, out)
            elif option.plain_name == "json_name":
                if not isinstance(option.value, Text):
                    raise refuse(option.line, "json_name is not a string")
                out.json_name = option.value.value.decode("utf-8", "replace")
            else:
                options.append(option)
        self._set_options(out, options, scope)

    def _default(self, option: Option, field: Field, out: FieldDescriptorProto) -> None:
        if self._proto3:
            raise refuse(option.line, f"field {field.name!r}: proto3 has no defaults")
        if out.label == FieldDescriptorProto.LABEL_REPEATED or out.type in (
            FieldDescriptorProto.TYPE_MESSAGE,
            FieldDescriptorProto.TYPE_GROUP,
        ):
            raise refuse(option.line, f"field {field.name!r}: repeated fields and messages have no default")
        enum = self._names.declared(out.type_name[1:]) if out.type_name else None
        out.default_value = default_text(option, out.type, enum, strict=self._strict)

    def _type(self, name: str, scope: str, out: FieldDescriptorProto, line: int) -> None:
        if name in _TYPES:
            out.type = _TYPES[name]
            return
        full_name = self._resolved(name, scope, line)
        out.type_name = f".{full_name}"
        is_enum = isinstance(self._names.declared(full_name), EnumDescriptorProto)
        out.type = FieldDescriptorProto.TYPE_ENUM if is_enum else FieldDescriptorProto.TYPE_MESSAGE

    def _resolved(self, name: str, scope: str, line: int) -> str:
        full_name = self._names.type(name, scope)
        if full_name is None:
            raise refuse(line, f"type {name!r} is not defined, neither here nor in an import")
        return full_name

    def _map(self, field: Field, scope: str, out: FieldDescriptorProto, parent: DescriptorProto) -> None:
        if field.key_type not in MAP_KEYS:
            raise refuse(field.line, f"field {field.name!r}: {field.key_type!r} cannot be the key of a map")
        name = _camel(field.name) + "Entry"
        self._declare(scope, name, field.line)
        # Last among the nested types, so that message indexes count what the text shows.
        entry = parent.nested_type.add(name=name)
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=_OPTIONAL, type=_TYPES[field.key_type])
        value = entry.field.add(name="value", number=2, label=_OPTIONAL)
        self._type(field.type, scope, value, field.line)
        out.label = FieldDescriptorProto.LABEL_REPEATED
        out.type = FieldDescriptorProto.TYPE_MESSAGE
        out.type_name = f".{qualified(scope, name)}"

    def _enum(self, enum: Enum, scope: str, out: EnumDescriptorProto) -> None:
        for value in enum.values:
            described = out.value.add(name=value.name, number=value.number)
            self._set_options(described, value.options, scope)
        for reserved in enum.reserved:
            for numbers in reserved.ranges:
                out.reserved_range.add(start=numbers.start, end=numbers.end)
            out.reserved_name.extend(reserved.names)
        self._set_options(out, enum.options, scope)
        check_enum(enum, out.options.allow_alias, self._proto3, self._strict)

    def _extend(self, extend: Extend, scope: str, out: FileDescriptorProto | DescriptorProto) -> None:
        extendee = self._resolved(extend.extendee, scope, extend.line)
        declared = self._names.declared(extendee)
        if not isinstance(declared, DescriptorProto):
            raise refuse(extend.line, f"{extendee!r} is no message")
        ranges = self._extension_ranges(extendee, declared)
        for field in extend.fields:
            if field.number not in ranges:
                raise refuse(field.line, f"{extendee!r} has no extension number {field.number}")
            if field.body is not None and isinstance(out, FileDescriptorProto):
                self._declare_message(field.body, scope, out.message_type.add())
                self._message(field.body, scope, out.message_type[-1])
            described = out.extension.add(extendee=f".{extendee}")
            self._field(field, scope, described, None)
            self._names.add(qualified(scope, field.name), described)

    def _extension_ranges(self, extendee: str, declared: DescriptorProto) -> Ranges:
        if extendee not in self._ranges:
            found = ((Range(one.start, one.end - 1), 0) for one in declared.extension_range)
            self._ranges[extendee] = Ranges(found)
        return self._ranges[extendee]

    def _service(self, service: Service, out: ServiceDescriptorProto) -> None:
        full_name = self._declare(self._file.package, service.name, service.line)
        out.name = service.name
        for method in service.methods:
            self._declare(full_name, method.name, method.line)
            described: MethodDescriptorProto = out.method.add(name=method.name)
            described.input_type = self._method_type(method.input_type, full_name, method.line)
            described.output_type = self._method_type(method.output_type, full_name, method.line)
            if method.client_streaming:
                described.client_streaming = True
            if method.server_streaming:
                described.server_streaming = True
            self._set_options(described, method.options, full_name)
        self._set_options(out, service.options, full_name)

    def _method_type(self, name: str, scope: str, line: int) -> str:
        full_name = self._resolved(name, scope, line)
        if not isinstance(self._names.declared(full_name), DescriptorProto):
            raise refuse(line, f"{full_name!r} is no message")
        return f".{full_name}"

    def _set_options(self, owner: object, options: Iterable[Option], scope: str) -> None:
        self.pending += set_options(owner, options, scope, strict=self._strict)

    def extension_name(self, name: str, scope: str) -> str | None:
        return self._names.extension(name, scope)


def _all_fields(message: Message) -> list[Field]:
    return [*message.fields, *(field for oneof in message.oneofs for field in oneof.fields)]


def _camel(name: str) -> str:
    """The name as part of a map entry's name: foo_bar is FooBar."""
    return "".join(part[:1].upper() + part[1:] for part in re.split("_", name))
