"""Finds the field of a message that cannot be encoded, and the reason.

This is slow. The compiled encoder calls it for a message that it could not encode.
"""

from __future__ import annotations

import struct
from typing import Any

from barnabas.protocol.errors import EncodingError
from barnabas.protocol.message import Message, Struct, default_of
from barnabas.protocol.reading import joined
from barnabas.protocol.schema import Field
from barnabas.protocol.types import FIXED_FORMATS, STRING_LENGTH_MAX
from barnabas.protocol.wire import VARINT_MAX


def explain_encoding(message: Message, version: int, error: Exception) -> None:
    """Raise the `EncodingError` for a message that the compiled encoder refused with `error`."""
    Checker(message.schema.name, version).struct(message, "")
    raise EncodingError(message.schema.name, f"the message cannot be encoded: {error}") from error


class Checker:
    """Checks all fields that one version encodes."""

    def __init__(self, name: str, version: int) -> None:
        self.name = name
        self.version = version

    def fail(self, path: str, reason: str) -> EncodingError:
        return EncodingError(path or self.name, f"{reason} (in {self.name} version {self.version})")

    def struct(self, value: Any, path: str) -> None:
        if not isinstance(value, Struct):
            raise self.fail(path, f"{value!r:.100} is not a struct")
        for field in value.schema.fields:
            where = joined(path, field.name)
            if self.version not in field.versions:
                continue
            try:
                content = getattr(value, field.name)
            except AttributeError:
                raise self.fail(where, "the field was never set") from None
            if field.tag is None or content != default_of(field):
                self.value(field, content, where)
        self.tags(value, path)

    def tags(self, value: Struct, path: str) -> None:
        known = [
            field.tag
            for field in value.schema.fields
            if field.tag is not None and self.version in field.versions
        ]
        for number, data in value.unknown_tagged_fields or ():
            where = joined(path, f"tag {number}")
            if number in known:
                raise self.fail(where, "a tag occurs twice")
            known.append(number)
            if not isinstance(data, (bytes, bytearray, memoryview)):
                raise self.fail(where, f"{data!r:.100} is not bytes")

    def value(self, field: Field, value: Any, path: str) -> None:
        if value is None:
            if self.version not in field.nullable:
                raise self.fail(path, "None where a value is needed")
        elif field.is_array:
            if not isinstance(value, (list, tuple)):
                raise self.fail(path, f"{value!r:.100} is not a list")
            for i, element in enumerate(value):
                self.element(field, element, f"{path}[{i}]")
        else:
            self.element(field, value, path)

    def element(self, field: Field, value: Any, path: str) -> None:
        if field.struct is not None:
            if not isinstance(value, field.struct):
                raise self.fail(path, f"{value!r:.100} is not a {field.struct.__qualname__}")
            self.struct(value, path)
        elif field.type in FIXED_FORMATS:
            try:
                struct.pack(">" + FIXED_FORMATS[field.type], value)
            except struct.error:
                raise self.fail(path, f"{value!r:.100} does not fit in {field.type}") from None
        elif field.type == "String":
            self.text(value, path)
        elif not hasattr(value, "__len__") or isinstance(value, str):
            raise self.fail(path, f"{value!r:.100} is not bytes")
        elif len(value) >= VARINT_MAX:
            raise self.fail(path, f"{len(value)} bytes are more than {VARINT_MAX - 1}")

    def text(self, value: Any, path: str) -> None:
        if not isinstance(value, str):
            raise self.fail(path, f"{value!r:.100} is not text")
        try:
            size = len(value.encode())
        except UnicodeEncodeError as error:
            raise self.fail(path, f"the text has no UTF-8: {error.reason}") from None
        if size > STRING_LENGTH_MAX:
            raise self.fail(path, f"a string of {size} bytes is longer than {STRING_LENGTH_MAX}")
