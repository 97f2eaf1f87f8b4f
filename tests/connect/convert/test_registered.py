"""Converters with a registry: round trips of random data, schemas as Confluent's converters write them."""

from __future__ import annotations

import datetime as dt
import io
import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings

from barnabas.connect.config import ConfigError
from barnabas.connect.convert.registered.avro import AvroConverter
from barnabas.connect.convert.registered.json_schema import JsonSchemaConverter
from barnabas.connect.convert.registered.protobuf import ProtobufConverter
from barnabas.connect.data import (
    DATE,
    INT8,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIMESTAMP,
    Column,
    Schema,
    decimal,
    mapping,
    struct,
)
from barnabas.connect.data.schema import Field, Type
from barnabas.connect.plugins import RetriableError
from barnabas.schemas import SchemaRegistryClient
from barnabas.schemas.client.values import Schema as RegistrySchema
from barnabas.schemas.protobuf.parsing import parse
from connect.convert.made_converters import made, registered, round_trip
from connect.convert.random_data import structs_with_values

EXAMPLES = 60


def test_random_structs_survive_avro(url: str) -> None:
    converter = made(AvroConverter, url, value_subject_name_strategy="TopicRecordNameStrategy")
    number = iter(range(10_000))

    @settings(max_examples=EXAMPLES)
    @given(structs_with_values())
    def check(data: tuple[Schema, list[Any]]) -> None:
        schema, values = data
        found = round_trip(converter, schema, values, f"avro{next(number)}")
        assert found.schema == schema
        assert found.pylist() == Column.of(values, schema).pylist()

    check()


def test_avro_schemas_have_confluents_properties(url: str) -> None:
    schema = struct(
        name="shop.Order", version=3, id=INT64, small=INT8, price=decimal(2), day=DATE,
        at=TIMESTAMP, note=OPTIONAL_STRING, count=Schema(type=INT32.type, default=7),
        parts=mapping(INT32, STRING),
    )  # fmt: skip
    value = {"id": 1, "small": 2, "price": None, "day": None, "at": None, "note": None, "count": None}
    value |= {"price": 5, "parts": {1: "one"}}
    value |= {
        "price": Decimal("5.25"),
        "day": dt.date(2026, 1, 2),
        "at": dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
    }
    found = round_trip(made(AvroConverter, url), schema, [value], "orders")
    assert found.pylist() == [{**value, "count": 7}]
    fields = {one["name"]: one for one in registered(url, "orders-value")["fields"]}
    top = registered(url, "orders-value")
    assert (top["name"], top["namespace"], top["connect.version"], top["connect.name"]) == (
        "Order", "shop", 3, "shop.Order",
    )  # fmt: skip
    assert fields["small"]["type"] == {"type": "int", "connect.type": "int8"}
    assert fields["price"]["type"] == {
        "type": "bytes", "scale": 2, "precision": 64, "connect.version": 1,
        "connect.parameters": {"scale": "2"}, "connect.name": "org.apache.kafka.connect.data.Decimal",
        "logicalType": "decimal",
    }  # fmt: skip
    assert fields["day"]["type"]["logicalType"] == "date"
    assert fields["note"] == {"name": "note", "type": ["null", "string"], "default": None}
    assert fields["count"]["type"] == {"type": "int", "connect.default": 7}
    assert fields["count"]["default"] == 7
    assert fields["parts"]["type"]["items"]["name"] == "MapEntry"


def test_avro_of_other_producers_is_read(url: str) -> None:
    avro = {
        "type": "record", "name": "Event", "namespace": "x", "fields": [
            {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}},
            {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
            {"name": "what", "type": ["null", "string", "int", {"type": "record", "name": "Inner", "fields": [
                {"name": "a", "type": "long"}]}]},
            {"name": "micros", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        ],
    }  # fmt: skip
    with SchemaRegistryClient(url) as client:
        number = client.register_schema("events-value", RegistrySchema(json.dumps(avro))).id or 0
    parsed = fastavro.parse_schema(avro)
    rows = []
    for what in (None, "text", 5, {"a": 1}):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, {"color": "RED", "hash": b"ab", "what": what, "micros": 5})
        rows.append(b"\0" + number.to_bytes(4, "big") + out.getvalue())
    converter = made(AvroConverter, url, **{"enhanced.avro.schema.support": "true"})
    read = converter.from_bytes("events", pa.array([*rows, None, b"\0\0\0\xff\xff1", b"x", b""], pa.binary()))
    assert sorted(read.failures) == [5, 6, 7]
    found = [value for part in read.parts for value in part.column.pylist()]
    assert [one and one["what"] for one in found] == [
        None,
        {"string": "text", "int": None, "x.Inner": None},
        {"string": None, "int": 5, "x.Inner": None},
        {"string": None, "int": None, "x.Inner": {"a": 1}},
        None,
    ]
    assert found[0]["color"] == "RED"
    assert found[0]["micros"] == 5
    schema = read.parts[0].column.schema
    assert schema.field("color").parameters["io.confluent.connect.avro.Enum"] == "x.Color"
    again = converter.to_bytes("events2", read.parts[0].column)
    assert not again.failures
    assert again.data.to_pylist()[0][5:] == rows[0][5:]
    assert again.data.to_pylist()[3][5:] == rows[3][5:]


def test_settings_choose_the_schema(url: str) -> None:
    schema, value = struct(name="a.B", x=INT32), {"x": 1}
    strict = made(AvroConverter, url, **{"auto.register.schemas": "false"})
    assert strict.to_bytes("none", Column.of([value], schema)).failures
    round_trip(made(AvroConverter, url), schema, [value], "latest")
    wider = struct(name="a.B", x=INT32, y=STRING)
    latest = made(AvroConverter, url, **{"use.latest.version": "true"})
    assert round_trip(latest, wider, [{"x": 1, "y": "gone"}], "latest").pylist() == [{"x": 1}]
    by_record = made(
        AvroConverter,
        url,
        **{"value.subject.name.strategy": "io.confluent.kafka.serializers.subject.RecordNameStrategy"},
    )
    round_trip(by_record, schema, [value], "named")
    assert registered(url, "a.B")["name"] == "B"
    odd = struct({"a-b": INT32}, name="9x.my name")
    scrubs = made(AvroConverter, url, **{"scrub.invalid.names": "true"})
    assert round_trip(scrubs, odd, [{"a-b": 1}], "odd").pylist() == [{"a_b": 1}]
    with pytest.raises(ConfigError):
        made(AvroConverter, "")


def test_a_registry_that_is_away_is_asked_again() -> None:
    converter = made(AvroConverter, "http://127.0.0.1:9")
    with pytest.raises(RetriableError):
        converter.from_bytes("t", pa.array([b"\0\0\0\0\1x"], pa.binary()))


@pytest.mark.parametrize("decimals", ["BASE64", "NUMERIC"])
def test_random_structs_survive_json_schema(url: str, decimals: str) -> None:
    more = {"decimal.format": decimals, "value.subject.name.strategy": "TopicRecordNameStrategy"}
    converter = made(JsonSchemaConverter, url, **more)
    number = iter(range(10_000))

    @settings(max_examples=EXAMPLES // 2)
    @given(structs_with_values())
    def check(data: tuple[Schema, list[Any]]) -> None:
        schema, values = data
        found = round_trip(converter, schema, values, f"{decimals}{next(number)}")
        assert found.schema == schema
        assert found.pylist() == Column.of(values, schema).pylist()

    check()


def test_json_schemas_have_confluents_properties(url: str) -> None:
    schema = struct(
        name="shop.Order", id=INT64, small=INT8, note=OPTIONAL_STRING, day=DATE, parts=mapping(INT32, STRING)
    )
    value = {"id": 1, "small": 2, "note": None, "day": dt.date(1970, 1, 3), "parts": {1: "one"}}
    converter = made(JsonSchemaConverter, url, **{"json.fail.invalid.schema": "true"})
    written = converter.to_bytes("orders-json", Column.of([value], schema)).data[0].as_py()
    assert json.loads(written[5:]) == {
        "id": 1, "small": 2, "note": None, "day": 2, "parts": [{"key": 1, "value": "one"}],
    }  # fmt: skip
    assert round_trip(converter, schema, [value], "orders-json").pylist() == [value]
    found = registered(url, "orders-json-value")
    assert found["title"] == "shop.Order"
    assert found["properties"]["small"] == {"type": "integer", "connect.type": "int8", "connect.index": 1}
    assert found["properties"]["note"] == {
        "oneOf": [{"type": "null"}, {"type": "string"}],
        "connect.index": 2,
    }
    assert found["properties"]["day"]["title"] == "org.apache.kafka.connect.data.Date"


def test_json_of_other_producers_is_read(url: str) -> None:
    content = {
        "$defs": {"size": {"type": "integer"}}, "type": "object", "required": ["a"],
        "properties": {
            "a": {"$ref": "#/$defs/size"}, "b": {"type": ["string", "null"]}, "c": {"enum": ["x", "y"]},
            "d": {"oneOf": [{"type": "boolean"}, {"type": "number"}]},
            "e": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
    }  # fmt: skip
    with SchemaRegistryClient(url) as client:
        number = client.register_schema("json-value", RegistrySchema(json.dumps(content), "JSON")).id or 0
    prefix = b"\0" + number.to_bytes(4, "big")
    rows = [prefix + json.dumps(one).encode() for one in (
        {"a": 1, "b": None, "c": "x", "d": True, "e": {"k": 1}}, {"a": 2, "d": 1.5}, {"a": "no"},
        {"c": "x"})]  # fmt: skip
    converter = made(JsonSchemaConverter, url, **{"use.optional.for.nonrequired": "true"})
    read = converter.from_bytes("json", pa.array([*rows, prefix + b"{"], pa.binary()))
    assert sorted(read.failures) == [2, 3, 4]
    found = [value for part in read.parts for value in part.column.pylist()]
    names = [f"io.confluent.connect.json.OneOf.field.{each}" for each in (0, 1)]
    assert found[0] == {
        "a": 1,
        "b": None,
        "c": "x",
        "d": dict(zip(names, (True, None), strict=True)),
        "e": {"k": 1},
    }
    assert found[1]["d"] == dict(zip(names, (None, 1.5), strict=True))


def plain(schema: Schema) -> bool:
    """Whether Protobuf has it: no lists or maps inside of lists and maps."""
    inner = schema.value
    if inner is not None and (inner.type in (Type.ARRAY, Type.MAP) or not plain(inner)):
        return False
    return all(plain(one.schema) for one in schema.fields)


def bare(schema: Schema) -> Schema:
    """Without the numbers of fields, and with the names of messages only."""
    kept = {k: v for k, v in schema.parameters.items() if not k.endswith("Tag")}
    name = schema.name.rpartition(".")[2] if schema.name and schema.type is Type.STRUCT else schema.name
    fields = tuple(Field(one.name, bare(one.schema)) for one in schema.fields)
    value = None if schema.value is None else bare(schema.value)
    optional = schema.optional or schema.type is Type.STRUCT or schema.logical is not None
    return replace(
        schema,
        parameters=kept,
        name=name,
        fields=fields,
        value=value,
        optional=optional and schema.type not in (Type.ARRAY, Type.MAP),
    )


@pytest.mark.parametrize("word", ["optional.for.nullables", "wrapper.for.nullables"])
def test_random_structs_survive_protobuf(url: str, word: str) -> None:
    more = {word: "true", "value.subject.name.strategy": "TopicRecordNameStrategy"}
    converter = made(ProtobufConverter, url, **more)
    number = iter(range(10_000))

    @settings(max_examples=EXAMPLES // 2, suppress_health_check=list(HealthCheck))
    @given(structs_with_values().filter(lambda data: plain(data[0])))
    def check(data: tuple[Schema, list[Any]]) -> None:
        schema, values = data
        found = round_trip(converter, schema, values, f"{word}{next(number)}")
        assert found.schema is not None
        if word == "optional.for.nullables":
            assert bare(found.schema) == bare(schema)
        expected = Column.of(values, schema).pylist()
        assert [without_empty(each) for each in found.pylist()] == [without_empty(each) for each in expected]

    check()


def without_empty(value: Any) -> Any:
    """Protobuf cannot tell a list or map that is null from an empty one."""
    if isinstance(value, dict):
        return {k: without_empty(v) for k, v in value.items() if v is not None and v not in ({}, [])}
    if isinstance(value, list):
        return [without_empty(each) for each in value]
    return value


def test_protobuf_of_other_producers_is_read(url: str) -> None:
    text = """
        syntax = "proto3";
        package shop;
        message Other { int32 x = 1; }
        message Order {
          enum Color { RED = 0; BLUE = 5; }
          message Line { uint32 n = 1; }
          int64 id = 7;
          Color color = 2;
          oneof pay { string card = 3; Line line = 4; }
          map<string, Line> lines = 5;
          repeated sint32 numbers = 6;
        }
    """
    with SchemaRegistryClient(url) as client:
        number = client.register_schema("proto-value", RegistrySchema(text, "PROTOBUF")).id or 0
    parsed = parse(text)
    kind = GetMessageClass(parsed.pool.FindMessageTypeByName("shop.Order"))
    message = kind(id=1, color=5, card="c", numbers=[-1, 2])
    message.lines["a"].n = 9
    prefix = b"\0" + number.to_bytes(4, "big") + b"\x02\x02"
    converter = made(ProtobufConverter, url)
    data = pa.array([prefix + message.SerializeToString(), prefix, prefix + b"\xff", b"\0\0\0"], pa.binary())
    read = converter.from_bytes("proto", data)
    assert sorted(read.failures) == [2, 3]
    column = read.parts[0].column
    assert column.pylist() == [
        {"id": 1, "color": "BLUE", "pay_0": {"card": "c", "line": None}, "lines": {"a": {"n": 9}},
         "numbers": [-1, 2]},
        {"id": 0, "color": "RED", "pay_0": None, "lines": {}, "numbers": []},
    ]  # fmt: skip
    latest = made(ProtobufConverter, url, **{"use.latest.version": "true"})
    again = latest.to_bytes("proto", column)
    assert again.data.to_pylist() == [prefix + message.SerializeToString(deterministic=True), prefix]
