"""A pair of Protobuf schemas, and how tests write schemas in short."""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    name: str
    writer: str
    reader: str
    expected: tuple[tuple[str, str], ...] = ()


def proto3(body: str, package: str = "") -> str:
    return f'syntax = "proto3";{f" package {package};" if package else ""} {body}'


def proto2(body: str) -> str:
    return f'syntax = "proto2"; {body}'


def field_pair(name: str, old: str, new: str, *expected: tuple[str, str]) -> Pair:
    return Pair(name, proto3(f"message M {{ {old} }}"), proto3(f"message M {{ {new} }}"), expected)
