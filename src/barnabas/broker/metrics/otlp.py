"""Reads OTLP metrics: names, attributes and numbers of an OpenTelemetry MetricsData message.

In: protobuf bytes, as Kafka clients send them (KIP-714). Out: one `Point` for each number; histograms and
unknown fields are skipped. ValueError: the bytes are malformed, or have more fields than `FIELDS_MAX`: a
payload of many empty fields would take seconds. Does not know: clients.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
DELTA = 1
VARINT_BYTES_MAX = 10
FIELDS_MAX = 100_000  # of one payload; a client with a thousand metrics sends about ten thousand
_double = struct.Struct("<d").unpack
_signed = struct.Struct("<q").unpack

Value = int | bytes
Attributes = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Point:
    name: str
    attributes: Attributes
    value: float
    is_delta: bool  # the change since the last point, not a level or a total
    is_monotonic: bool = False  # a total that only grows


class Budget:
    """How many fields of a payload may still be read."""

    __slots__ = ("fields",)

    def __init__(self, fields: int) -> None:
        self.fields = fields


def points(payload: bytes) -> Iterator[Point]:
    left = Budget(FIELDS_MAX)
    for resource in nested(payload, 1, left):
        for scope in nested(resource, 2, left):
            for metric in nested(scope, 2, left):
                yield from of_metric(metric, left)


def of_metric(metric: bytes, left: Budget) -> Iterator[Point]:
    name = b"".join(nested(metric, 1, left)).decode()
    for gauge in nested(metric, 5, left):
        for point in nested(gauge, 1, left):
            yield from number(name, point, left, is_delta=False)
    for total in nested(metric, 7, left):
        is_delta = any(field == 2 and value == DELTA for field, value in fields(total, left))
        is_monotonic = any(field == 3 and value == 1 for field, value in fields(total, left))
        for point in nested(total, 1, left):
            yield from number(name, point, left, is_delta=is_delta, is_monotonic=is_monotonic)


def number(
    name: str, point: bytes, left: Budget, *, is_delta: bool, is_monotonic: bool = False
) -> Iterator[Point]:
    attributes = []
    found: float | None = None
    for field, value in fields(point, left):
        if field == 7 and isinstance(value, bytes):
            attributes.append(attribute(value, left))
        elif field == 4 and isinstance(value, bytes):
            (found,) = _double(value)
        elif field == 6 and isinstance(value, bytes):
            (whole,) = _signed(value)
            found = float(whole)
    if found is not None:
        yield Point(name, tuple(sorted(attributes)), found, is_delta, is_monotonic)


def attribute(data: bytes, left: Budget) -> tuple[str, str]:
    key = b"".join(nested(data, 1, left)).decode()
    for value in nested(data, 2, left):
        for field, found in fields(value, left):
            if field == 1 and isinstance(found, bytes):
                return key, found.decode()
            if field in (2, 3) and isinstance(found, int):
                return key, str(found)
    return key, ""


def nested(data: bytes, wanted: int, left: Budget) -> Iterator[bytes]:
    for field, value in fields(data, left):
        if field == wanted and isinstance(value, bytes):
            yield value


def fields(data: bytes, left: Budget) -> Iterator[tuple[int, Value]]:
    """Numbers and values of a message's fields: integers for varints, bytes for the rest."""
    position, end = 0, len(data)
    while position < end:
        left.fields -= 1
        if left.fields < 0:
            raise ValueError(f"more than {FIELDS_MAX} fields")
        tag, position = varint(data, position)
        kind = tag & 7
        if kind == VARINT:
            value: Value
            value, position = varint(data, position)
        else:
            if kind == BYTES:
                size, position = varint(data, position)
            elif kind in (FIXED64, FIXED32):
                size = 8 if kind == FIXED64 else 4
            else:
                raise ValueError(f"field type {kind} is unknown")
            if position + size > end:
                raise ValueError("a field is cut off")
            value, position = data[position : position + size], position + size
        yield tag >> 3, value


def varint(data: bytes, position: int) -> tuple[int, int]:
    result = 0
    for index in range(VARINT_BYTES_MAX):
        if position + index >= len(data):
            raise ValueError("a number is cut off")
        byte = data[position + index]
        result |= (byte & 127) << (7 * index)
        if byte < 128:
            return result, position + index + 1
    raise ValueError("a number is too long")
