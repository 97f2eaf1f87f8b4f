"""Payloads of strangers cost no more than their bytes."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest

from barnabas.schemas.avro.payload_reader import payload_reader

TREE = {
    "type": "record",
    "name": "Tree",
    "namespace": "a.b",
    "fields": [{"name": "left", "type": ["null", "Tree"]}, {"name": "n", "type": "int"}],
}
EMPTY = {"type": "record", "name": "Empty", "fields": [{"name": "nothing", "type": "null"}]}


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def read(schema: Any, payload: bytes) -> Any:
    return payload_reader(schema)(io.BytesIO(payload), fastavro.parse_schema(schema), None)


def test_recursive_values_are_read() -> None:
    value = {"left": {"left": None, "n": 1}, "n": 2}
    assert read(TREE, written(TREE, value)) == value


def test_a_deep_payload_raises_and_does_not_end_the_process() -> None:
    with pytest.raises(RecursionError):
        read(TREE, b"\x02" * 200_000)


@pytest.mark.parametrize(
    "items", ["null", EMPTY, {"type": "fixed", "name": "F", "size": 0}, {"type": "null"}]
)
def test_arrays_of_items_without_bytes_are_refused(items: Any) -> None:
    with pytest.raises(ValueError, match="take no bytes"):
        read({"type": "array", "items": items}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f")


def test_a_name_that_is_used_twice_is_not_recursive() -> None:
    schema = {
        "type": "record",
        "name": "Pair",
        "fields": [
            {"name": "a", "type": {"type": "enum", "name": "E", "symbols": ["X"]}},
            {"name": "b", "type": "E"},
            {"name": "c", "type": {"type": "array", "items": "E"}},
        ],
    }
    assert payload_reader(schema) is fastavro.schemaless_reader
    value = {"a": "X", "b": "X", "c": ["X"]}
    assert read(schema, written(schema, value)) == value
