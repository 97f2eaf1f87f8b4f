"""Avro's JSON encoding: data become the same bytes that fastavro writes, and come back as they were."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from fastavro.schema import SchemaParseException
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.rest.formats.avro import AvroCodec
from barnabas.rest.formats.errors import DataMismatch, SchemaRefused
from barnabas.rest.formats.source import KnownSchema
from barnabas.schemas.model import Reference, ResolvedReference, SchemaType

LIST = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}


def codec(schema: Any, *references: ResolvedReference) -> AvroCodec:
    return AvroCodec(KnownSchema(1, SchemaType.AVRO, json.dumps(schema), references))


def record(*fields: tuple[str, Any]) -> Any:
    return {
        "type": "record",
        "name": "R",
        "namespace": "n",
        "fields": [{"name": name, "type": kind} for name, kind in fields],
    }


ROUND_TRIPS: list[tuple[Any, Any]] = [
    ("null", None),
    ("boolean", True),
    ("int", -(2**31)),
    ("long", 2**63 - 1),
    ("double", 1.5),
    ("double", "NaN"),
    ("float", "-Infinity"),
    ("string", "žluťoučký"),
    ("bytes", "\x00\x7f\xff"),
    ({"type": "fixed", "name": "F", "size": 2}, "\xff\x00"),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
    ({"type": "array", "items": "bytes"}, ["\xff", ""]),
    ({"type": "map", "values": ["null", "string"]}, {"a": None, "b": {"string": "x"}}),
    (record(("a", "int"), ("b", ["null", "string"])), {"a": 1, "b": {"string": "x"}}),
    (["int", "long"], {"long": 3}),
    (["int", "long"], {"int": 3}),
    (["null", "float", "double"], {"double": 1.5}),
    (["null", {"type": "array", "items": "int"}, {"type": "map", "values": "int"}], {"array": [1]}),
    (["null", {"type": "enum", "name": "E", "namespace": "x", "symbols": ["A"]}, "string"], {"x.E": "A"}),
    (["null", {"type": "enum", "name": "E", "namespace": "x", "symbols": ["A"]}, "string"], {"string": "A"}),
    (["bytes", {"type": "fixed", "name": "F", "size": 1}], {"F": "\xff"}),
    (["boolean", "int"], {"boolean": True}),
    (["boolean", "int"], {"int": 1}),
    ({"type": "int", "logicalType": "date"}, 19_000),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "\x01"),
    (["null", {"type": "long", "logicalType": "timestamp-millis"}], {"long": 5}),
    (LIST, {"next": {"Node": {"next": None}}}),
    ([record(("a", "int")), "null"], {"n.R": {"a": 1}}),
    (
        record(("a", ["null", {"type": "record", "name": "T", "namespace": "", "fields": []}])),
        {"a": {"T": {}}},
    ),
]


@pytest.mark.parametrize(("schema", "data"), ROUND_TRIPS, ids=str)
def test_data_come_back_as_they_were(schema: Any, data: Any) -> None:
    made = codec(schema)
    assert made.decode(made.encode(data)) == data


def test_the_bytes_are_those_of_avro() -> None:
    schema = record(("a", "int"), ("b", ["null", "string"]), ("c", ["int", "long"]))
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, {"a": 1, "b": "x", "c": 7})
    assert codec(schema).encode({"a": 1, "b": {"string": "x"}, "c": {"int": 7}}) == stream.getvalue()
    assert codec("bytes").encode("\x01\xff") == b"\x01\xff"  # serialisers write bytes as they are
    assert codec("null").encode(None) == b""


MISFITS: list[tuple[Any, Any, str]] = [
    ("int", "1", "a whole number (int) was expected, not a string"),
    ("int", True, "not a boolean"),
    ("int", 1.0, "not a number"),
    ("int", 2**31, "too large for int"),
    ("long", 2**63, "too large for long"),
    ("float", 1e39, "too large for a float"),
    ("double", 10**400, "too large for a double"),
    ("string", 1, "a string was expected"),
    ("bytes", "€", "one is 8364"),
    ("boolean", 1, "a boolean was expected"),
    ("null", 0, "null was expected"),
    ({"type": "fixed", "name": "F", "size": 2}, "x", "needs 2 bytes, not 1"),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", 'no symbol "B"'),
    ({"type": "array", "items": "int"}, [1, "x"], "at [1]: a whole number"),
    ({"type": "map", "values": "int"}, {"k": None}, "at k: a whole number"),
    (record(("a", "int"), ("b", "string")), {"a": 1}, "the record n.R lacks b"),
    (record(("a", "int")), {"a": 1, "z": 2}, "no field z"),
    (record(("a", {**record(("b", "int")), "name": "T"})), {"a": {"b": "x"}}, "at a.b: "),
    (["null", "string"], "x", '(null, string), such as {"string": ...}'),
    (["null", "string"], {"int": 1}, "a union needs null"),
    (["null", "string"], {"string": "x", "null": None}, "a union needs null"),
    (["int", "string"], None, "a union needs null"),
    ("string", "\ud800", "surrogate"),
]


@pytest.mark.parametrize(("schema", "data", "text"), MISFITS, ids=str)
def test_data_that_do_not_fit_are_refused_with_their_place(schema: Any, data: Any, text: str) -> None:
    with pytest.raises(DataMismatch) as caught:
        codec(schema).encode(data)
    assert text in str(caught.value)


def test_a_field_with_a_default_must_be_there_all_the_same() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": 1}]}
    with pytest.raises(DataMismatch, match="lacks a"):
        codec(schema).encode({})


def test_types_of_references_are_known() -> None:
    other = {"type": "record", "name": "x.Other", "fields": [{"name": "v", "type": "int"}]}
    reference = ResolvedReference(Reference("x.Other", "other", 1), json.dumps(other))
    made = codec(record(("a", ["null", "x.Other"]), ("b", "x.Other")), reference)
    data = {"a": {"x.Other": {"v": 1}}, "b": {"v": 2}}
    assert made.decode(made.encode(data)) == data


@pytest.mark.parametrize("payload", [b"", b"\x02", b"\x08", b"\x02\x08ab", b"\x00\x00", b"\xff" * 12])
def test_bytes_that_are_no_avro_are_refused(payload: bytes) -> None:
    with pytest.raises(DataMismatch):
        codec(["null", "string"]).decode(payload)


def test_a_payload_nested_without_end_is_refused() -> None:
    with pytest.raises(DataMismatch, match="nested too deeply"):
        codec(LIST).decode(b"\x02" * 100_000 + b"\x00")


def test_data_nested_without_end_are_refused() -> None:
    data: Any = {"next": None}
    for _ in range(2_000):
        data = {"next": {"Node": data}}
    with pytest.raises(DataMismatch, match="nested too deeply"):
        codec(LIST).encode(data)


EMPTY = {"type": "record", "name": "Empty", "fields": []}


@pytest.mark.parametrize("items", ["null", EMPTY, {"type": "fixed", "name": "F", "size": 0}], ids=str)
def test_arrays_whose_items_take_no_bytes_are_refused(items: Any) -> None:
    with pytest.raises(SchemaRefused, match="no bytes"):
        codec({"type": "array", "items": items})


@pytest.mark.parametrize("schema", [{"type": "recrod"}, "nobody", {"type": "record"}, 7], ids=str)
def test_texts_that_are_no_schema_are_refused(schema: Any) -> None:
    with pytest.raises(SchemaRefused):
        codec(schema)


leaves = st.sampled_from(["null", "boolean", "int", "long", "double", "string", "bytes"])


@st.composite
def schemas_with_data(draw: Any, depth: int = 0) -> tuple[Any, Any]:
    """A schema, and data of it in Avro's JSON encoding."""
    kind = draw(st.sampled_from(["leaf", "array", "map", "record", "union"])) if depth < 3 else "leaf"
    if kind == "leaf":
        name = draw(leaves)
        return name, draw(DATA[name])
    inner = schemas_with_data(depth + 1)
    if kind == "array":
        schema, data = draw(inner)
        if schema == "null" or (isinstance(schema, dict) and schema["type"] == "record"):
            return schema, data
        return {"type": "array", "items": schema}, [data] * draw(st.integers(0, 3))
    if kind == "map":
        schema, data = draw(inner)
        return {"type": "map", "values": schema}, dict.fromkeys(draw(st.sets(st.text(), max_size=2)), data)
    if kind == "record":
        parts = draw(st.lists(inner, max_size=3))
        name = f"R{draw(st.integers(0, 10**9))}"
        fields = [{"name": f"f{index}", "type": schema} for index, (schema, _) in enumerate(parts)]
        return {"type": "record", "name": name, "fields": fields}, {
            f"f{index}": data for index, (_, data) in enumerate(parts)
        }
    names = draw(st.lists(leaves, min_size=1, max_size=4, unique=True))
    chosen = draw(st.sampled_from(names))
    return names, None if chosen == "null" else {chosen: draw(DATA[chosen])}


DATA: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "string": st.text(),
    "bytes": st.binary().map(lambda data: data.decode("latin-1")),
}


@settings(max_examples=150, deadline=None)
@given(schemas_with_data())
def test_any_data_come_back(pair: tuple[Any, Any]) -> None:
    schema, data = pair
    try:
        fastavro.parse_schema(json.loads(json.dumps(schema)))
    except SchemaParseException:
        return  # two records got the same name
    made = codec(schema)
    assert made.decode(made.encode(data)) == data
