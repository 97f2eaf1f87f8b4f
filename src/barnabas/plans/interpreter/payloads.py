"""Payloads of buffers in bytes: changes that suppress holds back, records of joins that wait.

In: functions that write and read keys and values. Out: a `PayloadFormat` for each kind of buffer. Keys of
records are read from the key under which they wait. Does not know: buffers.
"""

from __future__ import annotations

import struct
from typing import Any

from barnabas.plans.interpreter.records import Change, Headers
from barnabas.plans.interpreter.state.buffers import PayloadFormat
from barnabas.plans.serdes import FromBytes, ToBytes

_SUPPRESSED = struct.Struct(">qq?")
_SIZE = struct.Struct(">i")
_NONE = -1
SIDE_AT, KEY_AT = 8, 9  # of an entry of an outer join: its time, its side, its key
NUMBER_SIZE = 8  # of an entry of a join with a grace: its time, its key, its number


def sized(data: bytes | None) -> bytes:
    return _SIZE.pack(_NONE) if data is None else _SIZE.pack(len(data)) + data


def unsized(data: bytes, at: int) -> tuple[bytes | None, int]:
    (size,) = _SIZE.unpack_from(data, at)
    at += _SIZE.size
    return (None, at) if size == _NONE else (data[at : at + size], at + size)


def write_headers(headers: Headers) -> bytes:
    parts = [_SIZE.pack(len(headers))]
    for name, value in headers:
        parts += [sized(name.encode()), sized(value)]
    return b"".join(parts)


def read_headers(data: bytes, at: int) -> tuple[Headers, int]:
    (count,) = _SIZE.unpack_from(data, at)
    at += _SIZE.size
    found = []
    for _ in range(count):
        name, at = unsized(data, at)
        value, at = unsized(data, at)
        found.append(((name or b"").decode(), value))
    return tuple(found), at


def suppressed(write: ToBytes, read: FromBytes, read_key: FromBytes) -> PayloadFormat:
    """(time, key, change, timestamp, headers)"""

    def to_bytes(entry: bytes, payload: Any) -> bytes:
        time, _, change, timestamp, headers = payload
        values = (None if value is None else write(value) for value in (change.new, change.old))
        head = _SUPPRESSED.pack(time, timestamp, change.is_latest)
        return head + write_headers(headers) + b"".join(map(sized, values))

    def from_bytes(entry: bytes, data: bytes) -> Any:
        time, timestamp, is_latest = _SUPPRESSED.unpack_from(data)
        headers, at = read_headers(data, _SUPPRESSED.size)
        new, at = unsized(data, at)
        old, _ = unsized(data, at)
        change = Change(None if new is None else read(new), None if old is None else read(old), is_latest)
        return time, read_key(entry), change, timestamp, headers

    return PayloadFormat(to_bytes, from_bytes)


def unmatched(
    left: tuple[ToBytes, FromBytes], right: tuple[ToBytes, FromBytes], read_key: FromBytes
) -> PayloadFormat:
    """(key, values) of one side of an outer join"""

    def to_bytes(entry: bytes, payload: Any) -> bytes:
        write = (left if entry[SIDE_AT] else right)[0]
        return b"".join(sized(write(value)) for value in payload[1])

    def from_bytes(entry: bytes, data: bytes) -> Any:
        read = (left if entry[SIDE_AT] else right)[1]
        values, at = [], 0
        while at < len(data):
            value, at = unsized(data, at)
            values.append(read(value or b""))
        return read_key(entry[KEY_AT:]), values

    return PayloadFormat(to_bytes, from_bytes)


def delayed(write: ToBytes, read: FromBytes, read_key: FromBytes) -> PayloadFormat:
    """(key, value, headers) of a record that waits for a versioned table"""

    def to_bytes(entry: bytes, payload: Any) -> bytes:
        key, value, headers = payload
        return bytes([key is not None]) + write_headers(headers) + sized(write(value))

    def from_bytes(entry: bytes, data: bytes) -> Any:
        headers, at = read_headers(data, 1)
        value, _ = unsized(data, at)
        return read_key(entry[SIDE_AT:-NUMBER_SIZE]) if data[0] else None, read(value or b""), headers

    return PayloadFormat(to_bytes, from_bytes)
