"""Confluent's wire formats: which schema a payload was written with, before it or in a header.

In: a schema's id or GUID, message indexes, payloads. Out: bytes, or BadFrame. Does not know: registries,
topics.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

KEY_HEADER, VALUE_HEADER = "__key_schema_id", "__value_schema_id"
ID_MAGIC, GUID_MAGIC = 0, 1
INDEXES_MAX = 1_000  # messages nested so deep do not exist


class BadFrame(ValueError):
    """Bytes that do not begin as a payload with a schema does."""


@dataclass(frozen=True, slots=True)
class SchemaId:
    """The schema of a payload, by id (version 0 of the prefix) or by GUID (version 1)."""

    id: int | None = None
    guid: str | None = None
    indexes: tuple[int, ...] = ()  # of the message in a Protobuf schema; empty for other types

    def id_prefix(self) -> bytes:
        if self.id is None:
            raise BadFrame("the schema has no id")
        return struct.pack(">bI", ID_MAGIC, self.id) + written_indexes(self.indexes)

    def guid_prefix(self) -> bytes:
        if self.guid is None:
            raise BadFrame("the registry gave no GUID for the schema; GUIDs need a newer registry")
        return bytes([GUID_MAGIC]) + uuid.UUID(self.guid).bytes + written_indexes(self.indexes)


def written_indexes(indexes: Sequence[int]) -> bytes:
    """Message indexes as zigzag varints after their count; the usual `[0]` is one byte."""
    if not indexes:
        return b""
    if list(indexes) == [0]:
        return b"\x00"
    out = bytearray()
    for number in (len(indexes), *indexes):
        _write_varint(out, (number << 1) ^ (number >> 63))
    return bytes(out)


def _write_varint(out: bytearray, number: int) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def read_prefix(data: bytes, *, with_indexes: bool = False, zigzag: bool = True) -> tuple[SchemaId, int]:
    """The schema that the bytes name, and where the payload begins."""
    if not data:
        raise BadFrame("it is empty: no schema id")
    match data[0]:
        case 0:
            if len(data) < 5:
                raise BadFrame(f"it has {len(data)} bytes: too few for a schema id, which takes 5")
            found, at = SchemaId(id=int.from_bytes(data[1:5], "big")), 5
        case 1:
            if len(data) < 17:
                raise BadFrame(f"it has {len(data)} bytes: too few for a schema's GUID, which takes 17")
            found, at = SchemaId(guid=str(uuid.UUID(bytes=bytes(data[1:17])))), 17
        case magic:
            raise BadFrame(
                f"it begins with byte {magic}, not with 0 or 1: no serializer with schemas wrote it"
            )
    if with_indexes:
        indexes, at = read_indexes(data, at, zigzag)
        found = SchemaId(found.id, found.guid, indexes)
    return found, at


def read_indexes(data: bytes, at: int, zigzag: bool = True) -> tuple[tuple[int, ...], int]:
    """The path of a message in its file, and where its payload begins."""
    count, at = _read_varint(data, at, zigzag)
    if count == 0:
        return (0,), at
    if not 0 < count <= INDEXES_MAX:
        raise BadFrame(f"it has {count} message indexes")
    indexes = []
    for _ in range(count):
        index, at = _read_varint(data, at, zigzag)
        indexes.append(index)
    return tuple(indexes), at


def _read_varint(data: bytes, at: int, zigzag: bool) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise BadFrame("it ends within its message indexes")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return ((value >> 1) ^ -(value & 1) if zigzag else value), at


def header_of(headers: Any, name: str) -> bytes | None:
    """The value of a header in a list of pairs or in a dict; the last one counts."""
    if not headers:
        return None
    if isinstance(headers, dict):
        found = headers.get(name)
        return None if found is None else bytes(found)
    for key, value in reversed(list(headers)):
        if key == name and value is not None:
            return bytes(value)
    return None


def add_header(headers: Any, name: str, value: bytes) -> None:
    if isinstance(headers, dict):
        headers[name] = value
    elif isinstance(headers, list):
        headers.append((name, value))
    else:
        raise BadFrame("its schema id goes into a header, so the context needs headers: a list or a dict")
