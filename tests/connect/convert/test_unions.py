"""Unions, enums, kinds of numbers and scalars alone, as Confluent's converters have them."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass

from barnabas.connect.convert.registered.avro import AvroConverter
from barnabas.connect.convert.registered.json_schema import JsonSchemaConverter
from barnabas.connect.convert.registered.protobuf import ProtobufConverter
from barnabas.connect.data import INT32, INT64, STRING, Column, Schema
from barnabas.connect.data.schema import Type
from barnabas.schemas import SchemaRegistryClient
from barnabas.schemas.client.values import Schema as RegistrySchema
from barnabas.schemas.protobuf.parsing import parse
from connect.convert.made_converters import made, registered, round_trip


def protobuf_trip(url: str, topic: str, text: str, fill: Any, **more: str) -> tuple[Column, bytes, str]:
    """A message of another producer as read; written again under a new topic: its bytes and its schema."""
    with SchemaRegistryClient(url) as client:
        number = client.register_schema(f"{topic}-value", RegistrySchema(text, "PROTOBUF")).id or 0
        parsed = parse(text)
        message = GetMessageClass(parsed.pool.FindMessageTypeByName(parsed.message_name((0,))))()
        fill(message)
        prefix = b"\0" + number.to_bytes(4, "big") + b"\0"
        converter = made(ProtobufConverter, url, **more)
        sent = message.SerializeToString(deterministic=True)
        column = converter.from_bytes(topic, pa.array([prefix + sent], pa.binary())).parts[0].column
        written = converter.to_bytes(f"{topic}-again", column)
        assert not written.failures
        assert written.data[0].as_py()[6:] == sent
        return column, sent, client.get_version(f"{topic}-again-value").schema.text


PAYMENT = """
    syntax = "proto3";
    package shop;
    message Payment {
      enum Color { BLUE = 0; RED = 7; }
      message Address { string street = 1; }
      oneof pay { string card = 3; Address invoice = 4; }
      Address from = 5;
      Address to = 6;
      Color color = 8;
      uint32 small = 9;
      fixed64 large = 10;
    }
"""


def filled(message: Any) -> None:
    message.invoice.street = "a"
    message.to.street = "b"
    message.color, message.small, message.large = 7, 2**31, 5


def test_unions_enums_and_kinds_of_numbers_survive_protobuf(url: str) -> None:
    column, _, text = protobuf_trip(url, "payments", PAYMENT, filled)
    schema = column.schema
    assert schema is not None and schema.name == "Payment"
    union = schema.field("pay_0")
    assert union is not None and union.name == "io.confluent.connect.protobuf.Union.pay"
    color, small = schema.field("color"), schema.field("small")
    assert color is not None and (color.name, color.parameters["io.confluent.connect.protobuf.Enum.RED"]) == (
        "Color", "7",
    )  # fmt: skip
    assert small is not None and small.parameters["io.confluent.connect.protobuf.Type"] == "uint32"
    assert column.pylist()[0]["small"] == 2**31
    again = parse(text)
    found = again.pool.FindMessageTypeByName("Payment")
    assert [each.name for each in found.oneofs] == ["pay"]
    numbers = {each.name: (each.number, each.type) for each in found.fields}
    own = parse(PAYMENT).pool.FindMessageTypeByName("shop.Payment")
    assert numbers == {each.name: (each.number, each.type) for each in own.fields}
    assert text.count("message Address") == 1


def test_names_of_packages_and_generalized_unions_come_with_their_settings(url: str) -> None:
    more = {"enhanced.protobuf.schema.support": "true", "generalized.sum.type.support": "true",
            "generate.index.for.unions": "false"}  # fmt: skip
    schema = protobuf_trip(url, "general", PAYMENT, filled, **more)[0].schema
    assert schema is not None and schema.name == "shop.Payment"
    union, color = schema.field("pay"), schema.field("color")
    assert union is not None and union.parameters == {"org.apache.kafka.connect.data.Union": "pay"}
    assert color is not None and color.parameters["org.apache.kafka.connect.data.Enum"] == "Color"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (STRING, "é"), (INT32, -1), (INT64, 2**40), (Schema(type=Type.FLOAT32), 1.5),
        (Schema(type=Type.FLOAT64), 0.1), (Schema(type=Type.BOOLEAN), True), (Schema(type=Type.BYTES), b"\0"),
    ],
)  # fmt: skip
def test_a_value_that_is_no_struct_is_a_wrapper_of_protobuf(url: str, schema: Schema, value: Any) -> None:
    topic = f"raw-{schema.type}"
    converter = made(ProtobufConverter, url)
    found = round_trip(converter, schema, [value, None, value], topic)
    assert found.schema == schema and found.pylist() == [value, None, value]
    with SchemaRegistryClient(url) as client:
        assert "package google.protobuf;" in client.get_version(f"{topic}-value").schema.text
    whole = made(ProtobufConverter, url, **{"wrapper.for.raw.primitives": "false"})
    read = whole.from_bytes(topic, converter.to_bytes(topic, Column.of([value], schema)).data)
    assert read.parts[0].column.pylist() == [{"value": value}]


GENERAL = {"generalized.sum.type.support": "true"}
UNION, ENUM = "org.apache.kafka.connect.data.Union", "org.apache.kafka.connect.data.Enum"


def general_names(
    schema: Schema | None,
) -> tuple[list[tuple[str | None, dict[str, str], tuple[str, ...]]], Any]:
    """Of the unions `one` and `two` their names; of the enum `c` its parameters."""
    assert schema is not None
    found = {each.name: each.schema for each in schema.fields}
    unions = [
        (found[name].name, dict(found[name].parameters), found[name].field_names) for name in ("one", "two")
    ]
    return unions, found["c"].parameters


def test_unions_and_enums_of_avro_have_shared_names_on_request(url: str) -> None:
    avro = {
        "type": "record", "name": "R", "fields": [
            {"name": "one", "type": ["null", "int", "string"]},
            {"name": "two", "type": ["string", "boolean"]},
            {"name": "c", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}},
        ],
    }  # fmt: skip
    with SchemaRegistryClient(url) as client:
        number = (
            client.register_schema("general-avro-value", RegistrySchema(json.dumps(avro), "AVRO")).id or 0
        )
    out = io.BytesIO()
    fastavro.schemaless_writer(out, avro, {"one": "x", "two": True, "c": "BLUE"})
    payload = b"\0" + number.to_bytes(4, "big") + out.getvalue()
    converter = made(AvroConverter, url, **GENERAL)
    column = converter.from_bytes("general-avro", pa.array([payload], pa.binary())).parts[0].column
    unions, enum = general_names(column.schema)
    fields = ("connect_union_field_0", "connect_union_field_1")
    assert unions == [(f"connect_union_{n}", {UNION: f"connect_union_{n}"}, fields) for n in range(2)]
    assert enum == {ENUM: "Color", f"{ENUM}.RED": "0", f"{ENUM}.BLUE": "1"}
    assert column.pylist() == [
        {"one": {fields[0]: None, fields[1]: "x"}, "two": {fields[0]: None, fields[1]: True}, "c": "BLUE"}
    ]
    again = converter.to_bytes("general-avro-again", column)
    assert not again.failures and again.data[0].as_py()[5:] == out.getvalue()
    types = {each["name"]: each["type"] for each in registered(url, "general-avro-again-value")["fields"]}
    assert (types["one"], types["two"]) == (["null", "int", "string"], ["string", "boolean"])
    assert (types["c"]["type"], types["c"]["symbols"]) == ("enum", ["RED", "BLUE"])


def test_unions_and_enums_of_json_schema_have_shared_names_on_request(url: str) -> None:
    content = {
        "type": "object", "properties": {
            "one": {"oneOf": [{"type": "null"}, {"type": "integer"}, {"type": "string"}]},
            "two": {"anyOf": [{"type": "string"}, {"type": "boolean"}]},
            "c": {"enum": ["RED", "BLUE"]},
        },
    }  # fmt: skip
    with SchemaRegistryClient(url) as client:
        number = (
            client.register_schema("general-json-value", RegistrySchema(json.dumps(content), "JSON")).id or 0
        )
    row = {"one": "x", "two": True, "c": "BLUE"}
    payload = b"\0" + number.to_bytes(4, "big") + json.dumps(row).encode()
    converter = made(JsonSchemaConverter, url, **GENERAL)
    column = converter.from_bytes("general-json", pa.array([payload], pa.binary())).parts[0].column
    unions, enum = general_names(column.schema)
    fields = ("connect_union_field_0", "connect_union_field_1")
    assert unions == [(f"connect_union_{n}", {UNION: f"connect_union_{n}"}, fields) for n in range(2)]
    assert enum == {ENUM: "", f"{ENUM}.RED": "0", f"{ENUM}.BLUE": "1"}
    again = converter.to_bytes("general-json-again", column)
    assert not again.failures and json.loads(again.data[0].as_py()[5:]) == row
    read = converter.from_bytes("general-json-again", again.data).parts[0].column
    assert general_names(read.schema) == (unions, enum) and read.pylist() == column.pylist()
    plain = made(JsonSchemaConverter, url).from_bytes("general-json", pa.array([payload], pa.binary()))
    schema = plain.parts[0].column.schema
    assert schema is not None
    assert {each.schema.name for each in schema.fields if each.name != "c"} == {
        "io.confluent.connect.json.OneOf"
    }
