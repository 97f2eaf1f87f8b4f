"""Decodes a message field by field and keeps track of the field's path.

This is slow. The compiled decoder calls it for bytes that it could not decode, to name the field and the
error. It reads a limited number of values, because a peer may send a malformed message of any length. Tests
also compare it with the compiled decoder.
"""

from __future__ import annotations

import struct
from typing import Any

from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import Field
from barnabas.protocol.source import minimum_size
from barnabas.protocol.types import FIXED_FORMATS, STRING_LENGTH_MAX
from barnabas.protocol.wire import TAGS_MAX, Malformed, read_varint

VALUES_EXPLAINED_MAX = 1_000  # takes about two milliseconds
NO_LIMIT = 1 << 62


class TooLong(Exception):
    """The reader has read as many values as it may."""


def explain_decoding(cls: type[Message], version: int, buffer: Any, position: int, error: Exception) -> None:
    """Raise the `ProtocolError` for bytes that the compiled decoder refused with `error`."""
    if isinstance(error, ProtocolError):
        raise error
    try:
        Reader(cls, version, buffer, position, VALUES_EXPLAINED_MAX).message(cls)
    except TooLong:
        reason = f"it is malformed after the first {VALUES_EXPLAINED_MAX} values"
        raise ProtocolError(cls.__name__, f"{reason} (version {version}): {error}") from error
    raise ProtocolError(cls.__name__, f"the message cannot be decoded: {error}") from error


class Reader:
    """Decodes one message of one version, of at most `values_max` values and lengths."""

    def __init__(
        self, cls: type[Message], version: int, buffer: Any, position: int, values_max: int = NO_LIMIT
    ) -> None:
        self.name = cls.__name__
        self.values_left = values_max
        self.version = version
        self.flexible = version in cls.schema.flexible
        self.buffer = buffer
        self.position = position
        self.end = len(buffer)

    def message(self, cls: type[Message]) -> Message:
        return self.struct(cls, "")  # type: ignore[return-value]

    def fail(self, path: str, reason: str) -> ProtocolError:
        return ProtocolError(path or self.name, f"{reason} (in {self.name} version {self.version})")

    def take(self, size: int, path: str) -> Any:
        """The next `size` bytes, as a slice."""
        self.count()
        left = self.end - self.position
        if size > left:
            raise self.fail(path, f"{size} bytes expected, {left} left")
        self.position += size
        return self.buffer[self.position - size : self.position]

    def fixed(self, code: str, path: str) -> Any:
        (value,) = struct.unpack(">" + code, self.take(struct.calcsize(">" + code), path))
        return value

    def count(self) -> None:
        if not self.values_left:
            raise TooLong
        self.values_left -= 1

    def varint(self, path: str) -> int:
        self.count()
        try:
            value, self.position = read_varint(self.buffer, self.position)
        except IndexError:
            raise self.fail(path, "the message ends inside a length") from None
        except Malformed as error:
            raise self.fail(path, str(error)) from None
        return value

    def length(self, field: Field, wide: str, path: str, nullable: bool) -> int | None:
        """Read a length; None for null."""
        compact = self.flexible and self.version in field.flexible
        length: int = self.varint(path) - 1 if compact else self.fixed(wide, path)
        if length >= 0:
            return length
        if length < -1:
            raise self.fail(path, f"the length {length} is negative")
        if not nullable:
            raise self.fail(path, "null where a value is needed")
        return None

    def struct(self, cls: type[Struct], path: str) -> Struct:
        result = cls()
        tagged = {}
        for field in cls.schema.fields:
            if self.version not in field.versions:
                continue
            if field.tag is not None:
                tagged[field.tag] = field
            else:
                setattr(result, field.name, self.value(field, joined(path, field.name)))
        if self.flexible:
            self.tags(result, tagged, path)
        return result

    def tags(self, result: Struct, tagged: dict[int, Field], path: str) -> None:
        where = joined(path, "tagged fields")
        unknown: list[tuple[int, bytes]] = []
        count = self.varint(where)
        if count * 2 > self.end - self.position:
            raise self.fail(where, f"{count} tags do not fit in {self.end - self.position} bytes")
        if count > TAGS_MAX:
            raise self.fail(where, f"{count} tagged fields, more than {TAGS_MAX}")
        for _ in range(count):
            number = self.varint(where)
            size = self.varint(where)
            field = tagged.get(number)
            inside = joined(path, field.name if field else f"tag {number}")
            if size > self.end - self.position:
                raise self.fail(inside, f"{size} bytes expected, {self.end - self.position} left")
            if field is None:
                unknown.append((number, bytes(self.take(size, inside))))
                continue
            start = self.position
            setattr(result, field.name, self.value(field, inside))
            if self.position - start != size:
                raise self.fail(inside, f"the tag announces {size} bytes and holds {self.position - start}")
        result.unknown_tagged_fields = unknown or None

    def value(self, field: Field, path: str) -> Any:
        nullable = self.version in field.nullable
        if field.is_array:
            return self.array(field, path, nullable)
        if field.struct is None:
            return self.scalar(field, path, nullable)
        if nullable:
            marker = self.fixed("b", path)
            if marker == field.null_marker:
                return None
            if marker != 1:
                raise self.fail(path, f"{marker} says neither null nor present")
        return self.struct(field.struct, path)

    def array(self, field: Field, path: str, nullable: bool) -> list[Any] | None:
        count = self.length(field, "i", path, nullable)
        if count is None:
            return None
        size = minimum_size(field, self.version, self.flexible, element=True)
        if count * size > self.end - self.position:
            raise self.fail(path, f"{count} elements do not fit in {self.end - self.position} bytes")
        return [
            self.struct(field.struct, f"{path}[{i}]")
            if field.struct
            else self.scalar(field, f"{path}[{i}]", False)
            for i in range(count)
        ]

    def scalar(self, field: Field, path: str, nullable: bool) -> Any:
        if field.type in FIXED_FORMATS:
            return self.fixed(FIXED_FORMATS[field.type], path)
        length = self.length(field, "h" if field.type == "String" else "i", path, nullable)
        if length is None:
            return None
        if field.type == "String" and length > STRING_LENGTH_MAX:
            raise self.fail(path, f"a string of {length} bytes is longer than {STRING_LENGTH_MAX}")
        taken = self.take(length, path)
        if field.type == "Records":
            return taken
        if field.type == "Bytes":
            return bytes(taken)
        try:
            return str(taken, "utf-8")
        except UnicodeDecodeError as error:
            raise self.fail(path, f"the text is not UTF-8: {error.reason} at byte {error.start}") from None


def joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
