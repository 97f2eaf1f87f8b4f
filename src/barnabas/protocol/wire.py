"""Functions of compiled codecs for varints and tag sections.

Compiled code handles lengths below 128 itself and calls these functions for the rest. They raise `Malformed`
without a path; the caller then decodes the bytes again with `reading` to name the field.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from barnabas.protocol.types import STRING_LENGTH_MAX

VARINT_MAX = 0x7FFF_FFFF
TAGS_MAX = 1_000  # tagged fields of one struct; no version of any message has ten


class Malformed(ValueError):
    """The bytes do not fit the schema. Raised and caught inside the codec."""


ONE_BYTE = [bytes((number,)) for number in range(128)]


def varint(number: int) -> bytes:
    """An unsigned varint."""
    if number < 128:
        return ONE_BYTE[number]
    if number > VARINT_MAX:
        raise Malformed("a length beyond 2 GiB")
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def string_length(number: int) -> bytes:
    """Encode the length of a string plus one; `Malformed` for strings that Kafka refuses."""
    if number > STRING_LENGTH_MAX + 1:
        raise Malformed("the string is too long")
    return varint(number)


def varint_rest(buffer: Any, position: int, first: int) -> tuple[int, int]:
    """Read the rest of a varint whose first byte, 128 or more, has already been read.

    A last byte of zero is refused: compiled code would treat a short or null length as a long one.
    """
    byte = buffer[position]
    number = first - 128 + (byte << 7)
    if byte > 127:
        position += 1
        byte = buffer[position]
        number += (byte << 14) - (128 << 7)
        if byte > 127:
            position += 1
            byte = buffer[position]
            number += (byte << 21) - (128 << 14)
            if byte > 127:
                position += 1
                byte = buffer[position]
                number += (byte << 28) - (128 << 21)
                if byte > 7:
                    raise Malformed("a varint is beyond 31 bits")
    if not byte:
        raise Malformed("a varint is longer than it needs to be")
    return number, position + 1


def read_varint(buffer: Any, position: int) -> tuple[int, int]:
    byte = buffer[position]
    if byte < 128:
        return byte, position + 1
    return varint_rest(buffer, position + 1, byte)


def length_rest(buffer: Any, position: int, first: int) -> tuple[int, int]:
    """Read the rest of a length plus one. Refuses zero, which means null, since null is not allowed here."""
    if not first:
        raise Malformed("null")
    return varint_rest(buffer, position, first)


def string_rest(buffer: Any, position: int, first: int) -> tuple[str, int]:
    """Read a string whose length is null or takes several bytes."""
    length, position = length_rest(buffer, position, first)
    if length > STRING_LENGTH_MAX + 1:
        raise Malformed("the string is too long")
    end = position + length - 1
    return str(buffer[position:end], "utf-8"), end


def read_unknown_tags(buffer: Any, position: int) -> tuple[list[tuple[int, bytes]] | None, int]:
    """Read a tag section of a version without known tags."""
    count, position = read_varint(buffer, position)
    if count * 2 > len(buffer) - position:
        raise Malformed("more tags than bytes")
    if count > TAGS_MAX:
        raise Malformed(f"{count} tagged fields, more than {TAGS_MAX}")
    tags: list[tuple[int, bytes]] = []
    for _ in range(count):
        number, position = read_varint(buffer, position)
        size, position = read_varint(buffer, position)
        if size > len(buffer) - position:
            raise Malformed("a tagged field is longer than the message")
        tags.append((number, bytes(buffer[position : position + size])))
        position += size
    return tags or None, position


def tag_section(known: list[tuple[int, bytes]], unknown: list[tuple[int, bytes]] | None) -> bytes:
    """Encode all tagged fields in the order of their numbers. `known` is already in order. A number must not
    occur twice."""
    tags = sorted(known + unknown, key=itemgetter(0)) if unknown else known
    out = [varint(len(tags))]
    previous = -1
    for number, data in tags:
        if number <= previous:
            raise Malformed("a tag occurs twice")
        previous = number
        out += (varint(number), varint(len(data)), data)
    return b"".join(out)
