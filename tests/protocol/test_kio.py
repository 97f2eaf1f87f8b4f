"""Our bytes against kio, an independent implementation of the same messages.

kio has every request, response, header and piece of data in every version that we declare. It has no
records of internal topics and files: those are checked for round trips and against the facts only.
"""

from __future__ import annotations

import io
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from pkgutil import resolve_name
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer

from barnabas.protocol import NULL_UUID, Message, Struct

from .declarations import MESSAGES, values

KIO_PATHS: dict[tuple[str, int], str] = {
    (path.rpartition(":")[2], version): path
    for by_version in schema_name_map.values()
    for version, by_type in by_version.items()
    for path in by_type.values()
}
"""Where kio keeps a message, by name and version."""

IN_KIO = [cls for cls in MESSAGES if "log_records" not in cls.__module__]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

QUICK = settings(
    max_examples=2, deadline=None, database=None, suppress_health_check=list(HealthCheck), derandomize=True
)
LONG = settings(QUICK, max_examples=8)


def test_kio_has_every_message_and_version_that_is_not_a_record_of_an_internal_topic() -> None:
    ours = {(cls.__name__, version) for cls in IN_KIO for version in cls.schema.versions}
    assert ours == KIO_PATHS.keys()


@pytest.mark.parametrize("cls", IN_KIO, ids=lambda cls: cls.__name__)
def test_kio_decodes_our_bytes_and_encodes_the_same(
    cls: type[Message], request: pytest.FixtureRequest
) -> None:
    @(LONG if request.config.getoption("--long") else QUICK)
    @given(st.data())
    def same_bytes(data: st.DataObject) -> None:
        for version in cls.schema.versions:
            message = data.draw(values(cls, version, tame=True))
            encoded = message.encode(version)
            kio_class = resolve_name(KIO_PATHS[cls.__name__, version])
            read, size = entity_reader(kio_class)(encoded, 0)
            assert size == len(encoded)
            assert from_kio(read) == plain(message, version)
            buffer = io.BytesIO()
            entity_writer(kio_class)(buffer, read)
            assert buffer.getvalue() == encoded

    same_bytes()


def plain(value: Any, version: int) -> Any:
    """A message as nested lists of the values that this version carries."""
    if isinstance(value, list):
        return [plain(element, version) for element in value]
    if isinstance(value, Struct):
        present = [field for field in value.schema.fields if version in field.versions]
        return [plain(getattr(value, field.name), version) for field in present]
    return value


def from_kio(value: Any) -> Any:
    """The same for kio's classes, with its richer types turned into what is on the wire."""
    if is_dataclass(value):
        return [
            NULL_UUID if found is None and field.type == UUID | None else from_kio(found)
            for field in fields(value)
            for found in (getattr(value, field.name),)
        ]
    if isinstance(value, tuple):
        return [NULL_UUID if element is None else from_kio(element) for element in value]
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(milliseconds=1)
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    if isinstance(value, UUID):
        return value.bytes
    return value.value if isinstance(value, Enum) else value
