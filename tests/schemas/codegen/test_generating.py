"""Generated dataclasses are importable, typed, documented, and carry data through serializers unchanged."""

from __future__ import annotations

import datetime
import io
import json
import subprocess
import sys
import types
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from barnabas.schemas.codegen.generating import generate
from barnabas.schemas.model import InvalidSchema, Reference, ResolvedReference

from ..avro.test_properties import data, records


def imported(source: str) -> types.ModuleType:
    module = types.ModuleType("generated")
    sys.modules["generated"] = module
    exec(compile(source, "generated.py", "exec"), module.__dict__)
    return module


AVRO = """{
  "type": "record", "name": "Order", "namespace": "shop", "doc": "An order of a customer.",
  "fields": [
    {"name": "id", "type": {"type": "string", "logicalType": "uuid"}, "doc": "Given by the shop."},
    {"name": "class", "type": {"type": "enum", "name": "Class", "symbols": ["FIRST", "None"]},
     "default": "FIRST"},
    {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "lines", "type": {"type": "array", "items": {
      "type": "record", "name": "Line", "fields": [
        {"name": "sku", "type": "string"},
        {"name": "count", "type": "int", "default": 1},
        {"name": "tags", "type": {"type": "map", "values": "string"}, "default": {}}]}}, "default": []},
    {"name": "note", "type": ["null", "string"], "default": null},
    {"name": "parent", "type": ["null", "Order"], "default": null},
    {"name": "first", "type": "Line", "default": {"sku": "x", "count": 1, "tags": {}}},
    {"name": "paid", "type": ["null", "Line", "string", "boolean"], "default": null},
    {"name": "raw", "type": {"type": "fixed", "name": "Raw", "size": 2}, "default": "\\u00ff\\u0001"}
  ]
}"""


def order(made: Any, **more: Any) -> Any:
    return made.Order(
        id=uuid.UUID(int=7),
        total=Decimal("12.50"),
        at=datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
        day=datetime.date(2026, 1, 2),
        **more,
    )


def test_avro_records_go_through_fastavro_and_back() -> None:
    made = imported(generate("AVRO", AVRO))
    inner = order(made, note="inner", paid="cash")
    line = made.Line(sku="a", count=2, tags={"k": "v"})
    value = order(made, class_=made.Class.None_, lines=[line], parent=inner, paid=line)
    schema = fastavro.parse_schema(json.loads(AVRO))
    buffer = io.BytesIO()

    fastavro.schemaless_writer(buffer, schema, value.to_dict())
    buffer.seek(0)

    assert made.Order.from_dict(fastavro.schemaless_reader(buffer, schema, None)) == value


def test_defaults_are_those_of_the_schema() -> None:
    made = imported(generate("AVRO", AVRO))

    value = order(made)

    assert value.class_ is made.Class.FIRST and value.lines == [] and value.note is None
    assert value.first == made.Line(sku="x") and value.raw == b"\xff\x01"
    assert order(made).lines is not value.lines
    with pytest.raises(TypeError, match="missing"):
        made.Order()


def test_documentation_is_kept() -> None:
    source = generate("AVRO", AVRO)

    assert '"""An order of a customer."""' in source
    assert "# Given by the shop." in source
    assert "total: Decimal" in source and "note: str | None = None" in source


def test_hostile_documentation_does_not_break_out_of_its_string() -> None:
    text = json.dumps(
        {
            "type": "record",
            "name": "R",
            "doc": 'a """ + exec("1/0") + """ \\',
            "fields": [{"name": "a", "type": "int", "doc": "one\nimport nothing"}],
        }
    )

    made = imported(generate("AVRO", text))
    assert made.R(a=1).to_dict() == {"a": 1}


JSON = """{
  "$schema": "http://json-schema.org/draft-07/schema#", "title": "Customer", "type": "object",
  "description": "Who buys.",
  "properties": {
    "id": {"type": "integer", "description": "Unique."},
    "e-mail": {"type": "string"},
    "age": {"type": ["integer", "null"]},
    "level": {"enum": ["gold", "silver"]},
    "score": {"type": "number", "default": 1.5},
    "address": {"$ref": "#/definitions/address"},
    "others": {"type": "array", "items": {"$ref": "#/definitions/address"}},
    "extra": {"type": "object", "additionalProperties": {"type": "string"}},
    "any": {},
    "country": {"$ref": "country.json"}
  },
  "required": ["id", "e-mail"],
  "definitions": {"address": {"type": "object", "properties": {
     "street": {"type": "string"}, "next": {"$ref": "#/definitions/address"}}, "required": ["street"]}}
}"""
COUNTRY = ResolvedReference(
    Reference("country.json", "country", 1),
    '{"title": "Country", "type": "object", "properties": {"code": {"type": "string"}},'
    ' "required": ["code"]}',
)


def test_json_objects_are_the_same_after_a_round() -> None:
    source = generate("JSON", JSON, [COUNTRY])
    made = imported(source)
    data = {
        "id": 1,
        "e-mail": "a@b",
        "level": "gold",
        "address": {"street": "x", "next": {"street": "y"}},
        "others": [{"street": "z"}],
        "extra": {"k": "v"},
        "country": {"code": "DE"},
    }

    value = made.Customer.from_dict(data)

    assert value.e_mail == "a@b" and value.address.next.street == "y" and value.score == 1.5
    assert isinstance(value.country, made.Country)
    assert value.to_dict() == {**data, "score": 1.5}
    assert "Literal['gold', 'silver'] | None = None" in source and '"""Who buys."""' in source


PROTOBUF = """syntax = "proto3";
package shop;
message Order {
  int64 id = 1;
  string name = 2;
  repeated Line lines = 3;
  map<string, Line> by_sku = 4;
  Kind kind = 5;
  oneof payment { string card = 6; bytes token = 7; }
  optional int32 discount = 8;
  Order parent = 9;
  double rate = 10;
  map<int32, string> names = 11;
  enum Kind { NEW = 0; PAID = 1; }
  message Line { string sku = 1; uint32 count = 2; }
}
"""


def test_protobuf_messages_are_the_same_after_a_round() -> None:
    import base64

    from google.protobuf import descriptor_pool, json_format, message_factory
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    from barnabas.schemas.parsing import parse

    made = imported(generate("PROTOBUF", PROTOBUF))
    value = made.Order(
        id=2**60,
        lines=[made.OrderLine(sku="a", count=3)],
        by_sku={"a": made.OrderLine(sku="a")},
        kind=made.OrderKind.PAID,
        token=b"\x00\xff",
        discount=0,
        parent=made.Order(name="up"),
        rate=0.5,
        names={4: "four"},
    )
    file = FileDescriptorProto.FromString(
        base64.b64decode(parse("PROTOBUF", PROTOBUF).formatted("serialized"))
    )
    pool = descriptor_pool.DescriptorPool()
    file.name = "order.proto"
    pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))()

    json_format.ParseDict(value.to_dict(), message)
    data = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )

    assert message.lines[0].count == 3 and message.token == b"\x00\xff"
    assert made.Order.from_dict(data) == value


def test_names_that_mean_something_in_python_are_changed_only_there() -> None:
    names = ["__op", "_x_", "field", "list", "int", "from", "to_dict", "dataclass", "datetime", "self"]
    record = {
        "type": "record",
        "name": "Any",
        "fields": [
            *({"name": name, "type": "int", "default": 3} for name in names),
            {"name": "str", "type": {"type": "array", "items": "string"}, "default": []},
            {"name": "at", "type": {"type": "int", "logicalType": "date"}},
            {"name": "d", "type": {"type": "record", "name": "Decimal", "fields": []}, "default": {}},
            {
                "name": "e",
                "type": {
                    "type": "enum",
                    "name": "StrEnum",
                    "symbols": ["mro", "_a_", "__b", "name", "value"],
                },
            },
        ],
    }
    made = imported(generate("AVRO", json.dumps(record)))
    for symbol in ("mro", "_a_", "__b", "name", "value"):
        data = {
            **dict.fromkeys(names, 1),
            "str": ["x"],
            "at": datetime.date(2026, 1, 2),
            "d": {},
            "e": symbol,
        }

        assert made.Any2.from_dict(data).to_dict() == data
    value = made.Any2(at=datetime.date(2026, 1, 2), e=made.StrEnum2("name"))
    assert value.to_dict()["__op"] == 3 and value.field__op == 3


def test_names_that_become_the_same_in_python_stay_apart() -> None:
    schema = {
        "title": "T",
        "type": "object",
        "properties": {name: {"type": "integer"} for name in ("a-b", "a_b", "a.b")},
    }
    made = imported(generate("JSON", json.dumps(schema)))

    data = {"a-b": 1, "a_b": 2, "a.b": 3}
    assert made.T.from_dict(data).to_dict() == data


def test_a_schema_without_classes_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="no class is needed"):
        generate("AVRO", '"string"')


def test_two_types_of_the_same_last_name_get_two_classes() -> None:
    text = (
        """["null", {"type":"record","name":"a.R","fields":[]}, {"type":"record","name":"b.R","fields":[]}]"""
    )

    made = imported(generate("AVRO", text))
    assert made.R is not made.R2


def test_generated_modules_pass_the_type_checker(tmp_path: Path) -> None:
    for schema_type, text, known in (
        ("AVRO", AVRO, []),
        ("JSON", JSON, [COUNTRY]),
        ("PROTOBUF", PROTOBUF, []),
    ):
        (tmp_path / f"{schema_type.lower()}.py").write_text(generate(schema_type, text, known))

    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout


@settings(max_examples=60, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(some.data())
def test_data_of_any_record_is_the_same_after_a_round(draw: some.DataObject) -> None:
    schema = draw.draw(records())
    value = draw.draw(data(schema))

    made = imported(generate("AVRO", json.dumps(schema)))

    assert getattr(made, schema["name"]).from_dict(value).to_dict() == value
