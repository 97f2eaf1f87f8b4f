"""Compares two Protobuf schemas: may a reader with one read what a writer with the other wrote?

In: descriptors of both files and of their imports. Out: incompatibilities, with paths such as #/Order/3.
Fields are matched by number, messages by name. Types of imports are compared too, unless both sides import
the same version of the same subject.
Does not know: text, options, reserved numbers, services: they do not change what is on the wire.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from barnabas.schemas.model import READER, WRITER, Incompatibility
from barnabas.schemas.protobuf.names import qualified

_F = FieldDescriptorProto
Fields: TypeAlias = dict[int, FieldDescriptorProto]  # by number
LEGACY_REQUIRED = 3  # the feature field_presence of editions
_LABEL_NAMES = {_F.LABEL_OPTIONAL: "optional", _F.LABEL_REQUIRED: "required", _F.LABEL_REPEATED: "repeated"}

# Kinds of scalars within which a field's type may change.
NUMBER, STRING = "number", "string or bytes"
_SCALAR_KINDS = {
    _F.TYPE_INT32: NUMBER,
    _F.TYPE_INT64: NUMBER,
    _F.TYPE_UINT32: NUMBER,
    _F.TYPE_UINT64: NUMBER,
    _F.TYPE_BOOL: NUMBER,
    _F.TYPE_ENUM: NUMBER,
    _F.TYPE_SINT32: "signed",
    _F.TYPE_SINT64: "signed",
    _F.TYPE_STRING: STRING,
    _F.TYPE_BYTES: STRING,
    _F.TYPE_FIXED32: "fixed32",
    _F.TYPE_SFIXED32: "fixed32",
    _F.TYPE_FIXED64: "fixed64",
    _F.TYPE_SFIXED64: "fixed64",
    _F.TYPE_FLOAT: "float",
    _F.TYPE_DOUBLE: "double",
}

_DESCRIPTIONS = {
    "PACKAGE_CHANGED": "The package at '{path}' in the {reader} schema"
    " does not match the package in the {writer} schema",
    "MESSAGE_REMOVED": "The {reader} schema is missing a MESSAGE type at path '{path}'"
    " in the {writer} schema",
    "FIELD_KIND_CHANGED": "The type of a field at path '{path}' in the {reader} schema"
    " does not match the {writer} schema",
    "FIELD_SCALAR_KIND_CHANGED": "The kind of a SCALAR field at path '{path}' in the {reader} schema"
    " does not match its kind in the {writer} schema",
    "FIELD_NAMED_TYPE_CHANGED": "The type of a MESSAGE field at path '{path}' in the {reader} schema"
    " does not match its type in the {writer} schema",
    "FIELD_NUMERIC_LABEL_CHANGED": "The label for a NUMERIC field at path '{path}' in the {reader} schema"
    " does not match its label in the {writer} schema",
    "REQUIRED_FIELD_ADDED": "A required field  at path '{path}' in the {reader} schema"
    " is missing in the {writer} schema",
    "REQUIRED_FIELD_REMOVED": "The {reader} schema is missing a required field at path: '{path}'"
    " in the {writer} schema",
    "ONEOF_FIELD_REMOVED": "The {reader} schema is missing a oneof field at path '{path}'"
    " in the {writer} schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "Multiple fields in the oneof at path '{path}' in the {reader} schema"
    " are outside a oneof in the {writer} schema",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "A field in the oneof at path '{path}' in the {reader} schema"
    " is outside an existing oneof in the {writer} schema",
}


def incompatibility(kind: str, path: str) -> Incompatibility:
    description = _DESCRIPTIONS[kind].format(path=path, reader=READER, writer=WRITER)
    return Incompatibility(kind, path, f'{{errorType:"{kind}", description:"{description}"}}')


@dataclass(frozen=True, slots=True)
class _Type:
    """A message with the file that declares it."""

    message: DescriptorProto
    local_name: str  # without the package
    file: FileDescriptorProto
    is_main: bool


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two schemas."""

    file: FileDescriptorProto
    types: dict[str, _Type]  # by full name with a leading dot


def compare(
    writer: FileDescriptorProto,
    writer_imports: Sequence[FileDescriptorProto],
    reader: FileDescriptorProto,
    reader_imports: Sequence[FileDescriptorProto],
    same_references: Collection[str],
) -> list[Incompatibility]:
    """Reasons why `reader` cannot read what `writer` wrote.

    `same_references`: import paths that both sides share.
    """
    comparison = _Comparison(_side(writer, writer_imports), _side(reader, reader_imports), same_references)
    return comparison.run()


def _side(file: FileDescriptorProto, imports: Sequence[FileDescriptorProto]) -> _Side:
    types: dict[str, _Type] = {}

    def collect(messages: Iterable[DescriptorProto], scope: str, owner: FileDescriptorProto) -> None:
        for message in messages:
            local = qualified(scope, message.name)
            types["." + qualified(owner.package, local)] = _Type(message, local, owner, owner is file)
            collect(message.nested_type, local, owner)

    for one in (*imports, file):
        collect(one.message_type, "", one)
    return _Side(file, types)


class _Comparison:
    """Compares pairs of messages, each pair once; fields of imported types add pairs."""

    def __init__(self, writer: _Side, reader: _Side, same_references: Collection[str]) -> None:
        self._writer = writer
        self._reader = reader
        self._same = same_references
        self._out: list[Incompatibility] = []
        self._waiting: deque[tuple[str, str]] = deque()  # pairs of imported types, by full names
        self._found: dict[tuple[str, str], int] = {}  # pair -> number of its incompatibilities
        # Fields whose types are such a pair: the pair that the field is in (none: the main file), its path.
        self._uses: dict[tuple[str, str], list[tuple[tuple[str, str] | None, str]]] = {}
        self._pair: tuple[str, str] | None = None  # the one that is compared now

    def run(self) -> list[Incompatibility]:
        writer, reader = self._writer.file, self._reader.file
        if writer.package != reader.package:
            self._add("PACKAGE_CHANGED", "#/")
        self._messages(writer.message_type, reader.message_type, "#")
        while self._waiting:
            self._pair = pair = self._waiting.popleft()
            before = len(self._out)
            old, new = self._writer.types[pair[0]], self._reader.types[pair[1]]
            self._message(old.message, new.message, "#/" + old.local_name.replace(".", "/"))
            self._found[pair] = len(self._out) - before
        self._name_users()
        return self._out

    def _name_users(self) -> None:
        """A field whose type became incompatible is incompatible, and so is the message that it is in."""
        broken = deque(pair for pair, count in self._found.items() if count)
        seen = set(broken)
        while broken:
            for user, path in self._uses.get(broken.popleft(), ()):
                self._add("FIELD_NAMED_TYPE_CHANGED", path)
                if user is not None and user not in seen:
                    seen.add(user)
                    broken.append(user)

    def _add(self, kind: str, path: str) -> None:
        self._out.append(incompatibility(kind, path))

    def _messages(self, old: Iterable[DescriptorProto], new: Iterable[DescriptorProto], path: str) -> None:
        by_name = {message.name: message for message in new}
        for message in old:
            if message.options.map_entry:
                continue  # compared as the field that has it
            here = f"{path}/{message.name}"
            if message.name in by_name:
                self._message(message, by_name[message.name], here)
            else:
                self._add("MESSAGE_REMOVED", here)

    def _message(self, old: DescriptorProto, new: DescriptorProto, path: str) -> None:
        """Compares fields by number wherever they are: a move between oneofs hides no change of a field."""
        old_fields, old_oneofs = _fields(old)
        new_fields, new_oneofs = _fields(new)
        self._exclusions(old_fields, old_oneofs, new_oneofs, path)
        # A oneof may go, if all its fields go with it.
        moved = {name for number, name in old_oneofs.items() if number in new_fields}
        kept = moved.union(new_oneofs.values())
        for number in sorted(old_fields.keys() | new_fields.keys()):
            before, after = old_fields.get(number), new_fields.get(number)
            oneof = old_oneofs.get(number) if after is None else new_oneofs.get(number)
            here = f"{path}/{number}" if oneof is None else f"{path}/{oneof}/{number}"
            if before is not None and after is not None:
                labels = (_label(before, self._writer.file), _label(after, self._reader.file))
                self._field(before, after, here, labels=all(labels) and labels[0] != labels[1])
            elif before is not None and oneof is not None:
                if oneof in kept:
                    self._add("ONEOF_FIELD_REMOVED", here)
            elif before is not None and _is_required(before):
                self._add("REQUIRED_FIELD_REMOVED", here)
            elif after is not None and oneof is None and _is_required(after):
                self._add("REQUIRED_FIELD_ADDED", here)
        self._messages(old.nested_type, new.nested_type, path)

    def _exclusions(
        self, old_fields: Fields, old_oneofs: dict[int, str], new_oneofs: dict[int, str], path: str
    ) -> None:
        """Fields that could be set together must not share a oneof from now on.

        They could, unless they were in the same oneof before. Fields that are new were in no old record.
        """
        origins: dict[str, set[str | int]] = {}
        for number, oneof in new_oneofs.items():
            if number in old_fields:
                origins.setdefault(oneof, set()).add(old_oneofs.get(number, number))
        for oneof, groups in origins.items():
            if len(groups) > 1:
                loose = sum(isinstance(group, int) for group in groups)
                kind = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if loose > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF"
                self._add(kind, f"{path}/{oneof}")

    def _field(
        self, old: FieldDescriptorProto, new: FieldDescriptorProto, path: str, *, labels: bool
    ) -> None:
        """Compares two fields; `labels` says that both have a label and that the labels differ."""
        old_entry = _entry(old, self._writer)
        new_entry = _entry(new, self._reader)
        if (old_entry is None) != (new_entry is None):
            self._add("FIELD_KIND_CHANGED", path)
        elif old_entry is not None and new_entry is not None:
            for before, after in zip(old_entry, new_entry, strict=True):
                self._field(before, after, path, labels=False)
        elif (old.type in _SCALAR_KINDS) != (new.type in _SCALAR_KINDS):
            self._add("FIELD_KIND_CHANGED", path)
        elif old.type in _SCALAR_KINDS:
            kind = _SCALAR_KINDS[old.type]
            if kind != _SCALAR_KINDS[new.type]:
                self._add("FIELD_SCALAR_KIND_CHANGED", path)
            elif labels and kind != STRING:
                self._add("FIELD_NUMERIC_LABEL_CHANGED", path)
        elif old.type != new.type:
            self._add("FIELD_KIND_CHANGED", path)  # a group is not written as a message is
        else:
            self._named(old.type_name, new.type_name, path)

    def _named(self, old_name: str, new_name: str, path: str) -> None:
        old, new = self._writer.types[old_name], self._reader.types[new_name]
        if old.local_name != new.local_name:
            self._add("FIELD_NAMED_TYPE_CHANGED", path)
            return
        if old.is_main and new.is_main:
            return  # compared by its name, with the rest of the file
        if old.file is new.file or (old.file.name == new.file.name and old.file.name in self._same):
            return
        pair = (old_name, new_name)
        if pair not in self._uses:
            self._uses[pair] = []
            self._waiting.append(pair)
        self._uses[pair].append((self._pair, path))


def _fields(message: DescriptorProto) -> tuple[Fields, dict[int, str]]:
    """Fields by number, and the oneofs of those that are in one."""
    oneofs = {
        field.number: message.oneof_decl[field.oneof_index].name
        for field in message.field
        if field.HasField("oneof_index") and not field.proto3_optional
    }
    return {field.number: field for field in message.field}, oneofs


def _entry(field: FieldDescriptorProto, side: _Side) -> list[FieldDescriptorProto] | None:
    """Key and value of a map field; none if the field is no map."""
    if field.type != _F.TYPE_MESSAGE:
        return None
    message = side.types[field.type_name].message
    if not message.options.map_entry or len(message.field) != 2:
        return None
    return sorted(message.field, key=lambda one: one.number)


def _label(field: FieldDescriptorProto, file: FileDescriptorProto) -> str | None:
    """The label as it is written: proto3, editions and oneofs leave it out."""
    if field.proto3_optional:
        return "optional"
    is_plain = field.label == _F.LABEL_OPTIONAL
    if field.HasField("oneof_index") or (is_plain and file.syntax not in ("", "proto2")):
        return None
    if not field.HasField("label"):
        return None
    return _LABEL_NAMES[field.label]


def _is_required(field: FieldDescriptorProto) -> bool:
    return bool(field.label == _F.LABEL_REQUIRED or field.options.features.field_presence == LEGACY_REQUIRED)
