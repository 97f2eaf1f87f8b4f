"""Converters with a registry, made for a test, and what they do with a column."""

from __future__ import annotations

import json
from typing import Any

from barnabas.connect.convert.registered.converter import RegistryConverter
from barnabas.connect.data import Column, Schema
from barnabas.schemas import SchemaRegistryClient

OPEN: list[RegistryConverter] = []


def made(kind: type[RegistryConverter], url: str, is_key: bool = False, **more: str) -> Any:
    found = kind()
    found.configure({"schema.registry.url": url, **{n.replace("_", "."): v for n, v in more.items()}}, is_key)
    OPEN.append(found)
    return found


def registered(url: str, subject: str) -> Any:
    with SchemaRegistryClient(url) as client:
        return json.loads(client.get_version(subject).schema.text)


def round_trip(converter: Any, schema: Schema, values: list[Any], topic: str = "t") -> Column:
    written = converter.to_bytes(topic, Column.of(values, schema))
    assert not written.failures
    read = converter.from_bytes(topic, written.data)
    assert not read.failures
    assert len(read.parts) == 1
    return read.parts[0].column  # type: ignore[no-any-return]
