"""Names of types and extensions, and how a short name leads to a full one.

In: files, as descriptors. Out: full names with a leading dot, by Protobuf's scoping: innermost scope first.
Does not know: fields' types beyond their names, text, options.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

Declared: TypeAlias = DescriptorProto | EnumDescriptorProto | FieldDescriptorProto


class Names:
    """Full names (without a leading dot) of the messages, enums and extensions of files."""

    def __init__(self) -> None:
        self._declared: dict[str, Declared] = {}

    def add_file(self, file: FileDescriptorProto) -> None:
        self._add(file.package, file.message_type, file.enum_type, file.extension)

    def add(self, full_name: str, declared: Declared) -> None:
        self._declared[full_name] = declared

    def _add(
        self,
        scope: str,
        messages: Iterable[DescriptorProto],
        enums: Iterable[EnumDescriptorProto],
        extensions: Iterable[FieldDescriptorProto],
    ) -> None:
        for message in messages:
            name = qualified(scope, message.name)
            self._declared[name] = message
            self._add(name, message.nested_type, message.enum_type, message.extension)
        for enum in enums:
            self._declared[qualified(scope, enum.name)] = enum
        for extension in extensions:
            self._declared[qualified(scope, extension.name)] = extension

    def declared(self, full_name: str) -> Declared | None:
        return self._declared.get(full_name)

    def type(self, name: str, scope: str) -> str | None:
        """The full name of a message or enum that `name` means inside `scope`."""
        return self._find(name, scope, extensions=False)

    def extension(self, name: str, scope: str) -> str | None:
        return self._find(name, scope, extensions=True)

    def _find(self, name: str, scope: str, *, extensions: bool) -> str | None:
        if name.startswith("."):
            return name[1:] if self._is(name[1:], extensions) else None
        while True:
            found = qualified(scope, name)
            if self._is(found, extensions):
                return found
            if not scope:
                return None
            scope = scope.rpartition(".")[0]

    def _is(self, full_name: str, extensions: bool) -> bool:
        declared = self._declared.get(full_name)
        return declared is not None and isinstance(declared, FieldDescriptorProto) == extensions


def qualified(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name
