"""Protobuf payloads: messages, their place in a file, files by their descriptors.

In: message classes, or schemas of a registry, as text or as descriptors. Out: payloads or messages.
Does not know: prefixes, subjects. protobuf is imported when a codec is made.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from barnabas.schemas.client.values import PROTOBUF, Schema
from barnabas.schemas.model import Reference, ResolvedReference

SERIALIZED = "serialized"  # the form that has descriptors
# Files that every Protobuf library has. They are never registered.
KNOWN = ("google/protobuf/", "google/type/", "confluent/")


def is_known(import_path: str) -> bool:
    return import_path.startswith(KNOWN)


def indexes_of(descriptor: Any) -> tuple[int, ...]:
    """The path of a message in its file: the index of the outermost message first."""
    found: list[int] = []
    while descriptor.containing_type is not None:
        siblings = [one.full_name for one in descriptor.containing_type.nested_types]
        found.insert(0, siblings.index(descriptor.full_name))
        descriptor = descriptor.containing_type
    top = [one.full_name for one in descriptor.file.message_types_by_name.values()]
    return (top.index(descriptor.full_name), *found)


def schema_of(file: Any, references: Sequence[Reference] = ()) -> Schema:
    """The schema of a file's descriptor, as the Python, Go and JavaScript clients register it."""
    text = base64.standard_b64encode(file.serialized_pb).decode()
    return Schema(text, PROTOBUF, tuple(references))


class ProtobufCodec:
    """One Protobuf file with those that it imports, from its text or its descriptor."""

    name = None

    def __init__(self, schema: Schema, references: Sequence[ResolvedReference]) -> None:
        from barnabas.schemas.protobuf.parsing import parse

        self._parsed = parse(schema.text, references)
        self._classes: dict[tuple[int, ...], Any] = {}

    def message_class(self, indexes: tuple[int, ...]) -> Any:
        from google.protobuf.message_factory import GetMessageClass

        if indexes not in self._classes:
            name = self._parsed.message_name(indexes)
            self._classes[indexes] = GetMessageClass(self._parsed.pool.FindMessageTypeByName(name))
        return self._classes[indexes]
