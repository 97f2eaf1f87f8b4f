"""Reads OTLP metrics: names, attributes and numbers of an OpenTelemetry MetricsData message.

In: protobuf bytes, as Kafka clients send them (KIP-714). Out: one `Point` for each number; histograms and
unknown fields are skipped. ValueError: the bytes are malformed. Does not know: clients.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
DELTA = 1
VARINT_BYTES_MAX = 10
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


def points(payload: bytes) -> Iterator[Point]:
    for resource in nested(payload, 1):
        for scope in nested(resource, 2):
            for metric in nested(scope, 2):
                yield from of_metric(metric)


def of_metric(metric: bytes) -> Iterator[Point]:
    name = b"".join(nested(metric, 1)).decode()
    for gauge in nested(metric, 5):
        for point in nested(gauge, 1):
            yield from number(name, point, is_delta=False)
    for total in nested(metric, 7):
        is_delta = any(field == 2 and value == DELTA for field, value in fields(total))
        is_monotonic = any(field == 3 and value == 1 for field, value in fields(total))
        for point in nested(total, 1):
            yield from number(name, point, is_delta=is_delta, is_monotonic=is_monotonic)


def number(name: str, point: bytes, *, is_delta: bool, is_monotonic: bool = False) -> Iterator[Point]:
    attributes = []
    found: float | None = None
    for field, value in fields(point):
        if field == 7 and isinstance(value, bytes):
            attributes.append(attribute(value))
        elif field == 4 and isinstance(value, bytes):
            (found,) = _double(value)
        elif field == 6 and isinstance(value, bytes):
            (whole,) = _signed(value)
            found = float(whole)
    if found is not None:
        yield Point(name, tuple(sorted(attributes)), found, is_delta, is_monotonic)


def attribute(data: bytes) -> tuple[str, str]:
    key = b"".join(nested(data, 1)).decode()
    for value in nested(data, 2):
        for field, found in fields(value):
            if field == 1 and isinstance(found, bytes):
                return key, found.decode()
            if field in (2, 3) and isinstance(found, int):
                return key, str(found)
    return key, ""


def nested(data: bytes, wanted: int) -> Iterator[bytes]:
    for field, value in fields(data):
        if field == wanted and isinstance(value, bytes):
            yield value


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Numbers and values of a message's fields: integers for varints, bytes for the rest."""
    position, end = 0, len(data)
    while position < end:
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
