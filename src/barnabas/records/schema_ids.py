"""Ids of schemas in records: which schema the serializer of a key or a value names, and whether it may.

In: the records of a batch, the ids that a registry is known to have for the topic. Out: the records that name
no schema or a wrong one, and the ids that a registry must be asked about first.
An id is the prefix of a payload: 0 and four bytes of an id, or 1 and the 16 bytes of a GUID. It may be in a
header instead. Null names no schema and needs none.
Does not know: registries, subjects, schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.records import varint

ID_BYTES, GUID_BYTES = 5, 17  # with the byte before them
BYTES_OF_MAGIC = {0: ID_BYTES, 1: GUID_BYTES}
KEY_HEADER, VALUE_HEADER = b"__key_schema_id", b"__value_schema_id"
HEADERS_READ_MAX = 100  # of one record
ERRORS_MAX = 1000  # of one batch
PAUSED_AFTER = 128  # records between two pauses of a thread


class SchemaIds:
    """Ids that the keys or the values of a topic may name, as far as they are known.

    The loop replaces `accepted` and `missing` as a whole; threads read them.
    """

    __slots__ = ("__weakref__", "accepted", "is_key", "missing", "strategy", "topic")

    def __init__(self, topic: str, strategy: str, *, is_key: bool) -> None:
        self.topic = topic
        self.strategy = strategy
        self.is_key = is_key
        self.accepted: frozenset[bytes] = frozenset()
        self.missing: dict[bytes, int] = {}  # until when the registry is not asked again, in milliseconds

    def __repr__(self) -> str:
        return f"the {'keys' if self.is_key else 'values'} of {self.topic}"


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """The parts of a topic's records that must name a schema. None: that part is not looked at."""

    key: SchemaIds | None
    value: SchemaIds | None


class Findings(NamedTuple):
    errors: list[tuple[int, str]]  # by the index of the record
    unknown: dict[SchemaIds, set[bytes]]


def check_schema_ids(
    data: bytes, count: int, rules: SchemaRules, now_ms: int, pause: Callable[[], None] | None
) -> Findings:
    """Look at all records of a batch, which must be well formed: `walk` or `scan` has read them before."""
    errors: list[tuple[int, str]] = []
    unknown: dict[SchemaIds, set[bytes]] = {}
    keys, values = rules.key, rules.value
    # A known id at the beginning of the payload, and no headers: nearly all records, so this is quick.
    good_keys = keys.accepted if keys is not None else frozenset()
    good_values = values.accepted if values is not None else frozenset()
    decode, small = varint.decode, varint.ONE_BYTE_VALUES
    end = 0
    for index in range(count):
        if pause is not None and not index % PAUSED_AFTER:
            pause()
        if (byte := data[end]) < 0x80:
            end, position = end + 1 + (byte >> 1), end + 1
        elif (second := data[end + 1]) < 0x80:  # sizes of up to 8 KB take two bytes; calls would be slow
            end, position = end + 2 + ((byte & 0x7F) >> 1 | second << 6), end + 2
        else:
            size, position = decode(data, end)
            end = position + size
        position += 1  # attributes
        while data[position] >= 0x80:  # the timestamp
            position += 1
        position += 1
        while data[position] >= 0x80:  # the offset
            position += 1
        if (byte := data[position + 1]) < 0x80:
            key_size, key_start = small[byte], position + 2
        else:
            key_size, key_start = decode(data, position + 1)
        position = key_start + key_size if key_size > 0 else key_start
        if (byte := data[position]) < 0x80:
            value_size, value_start = small[byte], position + 1
        elif (second := data[position + 1]) < 0x80 and not byte & 1:
            value_size, value_start = (byte & 0x7F) >> 1 | second << 6, position + 2
        else:
            value_size, value_start = decode(data, position)
        headers_at = value_start + value_size if value_size > 0 else value_start
        has_headers = data[headers_at]
        if (
            values is not None
            and value_size >= 0
            and (
                has_headers
                or value_size < ID_BYTES
                or data[value_start : value_start + ID_BYTES] not in good_values
            )
        ):
            found = named(data, headers_at, value_start, value_size, VALUE_HEADER)
            if found not in good_values:
                _judge(index, found, values, now_ms, errors, unknown)
        if (
            keys is not None
            and key_size >= 0
            and (
                has_headers or key_size < ID_BYTES or data[key_start : key_start + ID_BYTES] not in good_keys
            )
        ):
            found = named(data, headers_at, key_start, key_size, KEY_HEADER)
            if found not in good_keys:
                _judge(index, found, keys, now_ms, errors, unknown)
        if len(errors) >= ERRORS_MAX:
            break
    return Findings(errors, unknown)


def _judge(
    index: int,
    found: bytes | None,
    ids: SchemaIds,
    now_ms: int,
    errors: list[tuple[int, str]],
    unknown: dict[SchemaIds, set[bytes]],
) -> None:
    part = "key" if ids.is_key else "value"
    if found is None:
        errors.append((index, f"The {part} names no schema: it does not begin with the id of one"))
    elif ids.missing.get(found, 0) > now_ms:
        errors.append((index, f"The {part} names {shown(found)}, which its subject does not have"))
    else:
        unknown.setdefault(ids, set()).add(found)


def named(data: bytes, headers_at: int, start: int, size: int, header: bytes) -> bytes | None:
    """The id that a header or the payload itself begins with; None if there is none."""
    for name, content in _headers(data, headers_at):
        if name == header:
            return _prefix(content)
    return _prefix(data[start : start + min(size, GUID_BYTES)])


def _prefix(content: bytes) -> bytes | None:
    size = BYTES_OF_MAGIC.get(content[0]) if content else None
    return content[:size] if size is not None and len(content) >= size else None


def _headers(data: bytes, position: int) -> Iterator[tuple[bytes, bytes]]:
    count, position = varint.decode(data, position)
    for _ in range(min(count, HEADERS_READ_MAX)):
        size, position = varint.decode(data, position)
        name = data[position : position + size]
        size, position = varint.decode(data, position + size)
        content = data[position : position + size] if size > 0 else b""
        position += max(size, 0)
        yield name, content


def shown(found: bytes) -> str:
    """An id in words."""
    if len(found) == ID_BYTES:
        return f"the schema id {int.from_bytes(found[1:], 'big', signed=True)}"
    return f"the schema {found[1:].hex()}"
