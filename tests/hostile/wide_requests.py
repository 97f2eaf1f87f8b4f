"""Requests of few bytes and many elements: every array of every API, with thousands of different names."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from barnabas.protocol import ApiKey, Struct
from barnabas.protocol.apis import APIS, request_class, request_header_version
from barnabas.protocol.schema import Field
from interop.frames import framed, request

Path = tuple[str, ...]
LARGEST = {"Int8": 100, "Int16": 30_000, "UInt16": 60_000}
TOPIC = "hostile"
FIXED: dict[str, object] = {"acks": 1, "max_wait_ms": 10, "timeout_ms": 100, "validate_only": True}
"""Values of fields that would make the response wait, or make the request do what it says."""


def arrays(key: ApiKey, version: int) -> list[Path]:
    """The arrays of a request, at any depth."""
    return list(arrays_in(request_class(key), version))


def arrays_in(cls: type[Struct], version: int) -> Iterator[Path]:
    for field in cls.schema.fields:
        if version not in field.versions:
            continue
        if field.is_array:
            yield (field.name,)
        if field.struct is not None:
            for path in arrays_in(field.struct, version):
                yield (field.name, *path)


def wide_frame(key: ApiKey, version: int, path: Path, count: int) -> bytes:
    """A frame whose array at `path` has `count` different elements; all other arrays have one."""
    message = filled(request_class(key), version, path, count, None)
    for name, value in FIXED.items():
        if hasattr(message, name):
            setattr(message, name, value)
    body = message.encode(version)  # type: ignore[attr-defined]
    return framed(request(key, version, request_header_version(key, version), 7, body))


def filled(cls: type[Struct], version: int, path: Path, count: int, number: int | None) -> Struct:
    """A struct in which the array at `path` is wide. `number` tells elements of a wide array apart."""
    found = cls()
    for field in cls.schema.fields:
        if version not in field.versions:
            continue
        rest = path[1:] if path and path[0] == field.name else ()
        if field.is_array:
            is_wide = len(path) == 1 and path[0] == field.name
            numbers = range(count) if is_wide else (number,)
            setattr(found, field.name, [element(field, version, rest, count, each) for each in numbers])
        elif field.struct is not None:
            setattr(found, field.name, filled(field.struct, version, rest, count, number))
        else:
            setattr(found, field.name, value(field, version, number))
    return found


def element(field: Field, version: int, path: Path, count: int, number: int | None) -> Any:
    if field.struct is not None:
        return filled(field.struct, version, path, count, number)
    return scalar(field.type, number)


def value(field: Field, version: int, number: int | None) -> Any:
    if field.name.endswith(("replica_id", "transactional_id")) and number is None:
        return None if version in field.nullable else field.default
    return scalar(field.type, number)


def scalar(kind: str, number: int | None) -> Any:
    if kind == "String":
        return TOPIC if number is None else f"n{number}"
    if kind in ("Bytes", "Records"):
        return b""
    if kind == "Bool":
        return True
    if kind == "Float64":
        return 1.0
    if kind == "Uuid":
        return bytes(16) if number is None else struct.pack(">QQ", 77, number)
    return 0 if number is None else number % LARGEST.get(kind, 1 << 30)


def latest(key: int) -> int:
    return APIS[key].versions.last
