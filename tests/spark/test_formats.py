"""Formats: what is encoded is decoded, what is broken is named, schemas are read as Spark reads them."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import re
import struct
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra `spark`")

import pyarrow as pa
from google.protobuf import descriptor_pb2

from barnabas.spark.basics.settings import OptionError
from barnabas.spark.formats.ddl import DdlError, Field, Kind, parse_columns
from barnabas.spark.formats.formats import decode_column, encode_column, format_of, mode_of

SHOP = "id INT, name STRING, price DECIMAL(8,2), tags ARRAY<STRING>, at TIMESTAMP, open BOOLEAN"
SHOP_TYPE = pa.struct(
    [
        pa.field("id", pa.int32()),
        pa.field("name", pa.string()),
        pa.field("price", pa.decimal128(8, 2)),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("open", pa.bool_()),
    ]
)
NOON = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)


def codec(name: str, schema: str = "", message: str = "") -> Any:
    given = {"value.format": name, "value.schema": schema, "value.message": message}
    found = format_of({option: text for option, text in given.items() if text}, "value")
    assert found is not None
    return found.codec()


def decoded(found: Any, data: list[bytes | None], arrow_type: pa.DataType) -> tuple[list[Any], list[Any]]:
    column, errors = decode_column(found, pa.array(data, pa.binary()), arrow_type)
    return column.to_pylist(), errors or [None] * len(data)


def test_json_becomes_columns() -> None:
    text = '{"id": 1, "name": "a", "price": 1.10, "tags": ["x"], "open": true, "z": 0, '
    text += '"at": "2026-01-02T12:00:00Z"}'
    values, errors = decoded(codec("json", SHOP), [text.encode(), b"{}", None], SHOP_TYPE)
    price = decimal.Decimal("1.10")
    assert values[0] == {"id": 1, "name": "a", "price": price, "tags": ["x"], "at": NOON, "open": True}
    assert values[1] == dict.fromkeys(("id", "name", "price", "tags", "at", "open"))
    assert values[2] is None and errors == [None, None, None]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "JSONDecodeError"),
        ("[1]", "a JSON object is needed"),
        ('{"id": "x"}', "invalid literal"),
        ('{"id": 1.5}', "no whole number"),
        ('{"id": 3000000000}', "too large"),
        ('{"open": 1}', "neither true nor false"),
        ('{"tags": 5}', "not iterable"),
    ],
)
def test_broken_json_is_named_and_the_others_stay(text: str, problem: str) -> None:
    values, errors = decoded(codec("json", SHOP), [b'{"id": 7}', text.encode()], SHOP_TYPE)
    assert values[0]["id"] == 7 and values[1] is None
    assert errors[0] is None and problem in errors[1]


def test_csv_becomes_columns() -> None:
    found = codec("csv", "id INT, name STRING, price DOUBLE")
    arrow_type = pa.struct(
        [pa.field("id", pa.int32()), pa.field("name", pa.string()), pa.field("price", pa.float64())]
    )
    values, errors = decoded(found, [b'1,"a, b",2.5', b",x,", b"1,2"], arrow_type)
    assert values[:2] == [{"id": 1, "name": "a, b", "price": 2.5}, {"id": None, "name": "x", "price": None}]
    assert "2 fields, the schema has 3" in errors[2]
    assert found.encode({"id": 1, "name": "a, b", "price": None}) == b'1,"a, b",'


@pytest.mark.parametrize(
    ("name", "code", "value", "arrow_type"),
    [
        ("short", ">h", -5, pa.int16()),
        ("integer", ">i", 7, pa.int32()),
        ("long", ">q", 2**40, pa.int64()),
        ("float", ">f", 0.5, pa.float32()),
        ("double", ">d", 0.1, pa.float64()),
    ],
)
def test_numbers_are_those_of_kafkas_serializers(name: str, code: str, value: Any, arrow_type: Any) -> None:
    found = codec(name)
    values, errors = decoded(found, [struct.pack(code, value), b"x"], arrow_type)
    assert values == [value, None] and f"1 bytes are no {name}" in errors[1]
    assert found.encode(value) == struct.pack(code, value)


def test_text_that_is_none_is_named() -> None:
    values, errors = decoded(codec("string"), [b"gr\xc3\xbc\xc3\x9fe", b"\xff"], pa.string())
    assert values == ["grüße", None] and "UnicodeDecodeError" in errors[1]


AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"]},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2},
            },
            {"name": "lines", "type": {"type": "array", "items": {"type": "map", "values": "int"}}},
        ],
    }
)
AVRO_TYPE = pa.struct(
    [
        pa.field("id", pa.int64()),
        pa.field("note", pa.string()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("price", pa.decimal128(8, 2)),
        pa.field("lines", pa.list_(pa.map_(pa.string(), pa.int32()))),
    ]
)


def test_avro_goes_both_ways() -> None:
    found = codec("avro", AVRO)
    assert found.ddl == (
        "struct<`id`: bigint, `note`: string, `at`: timestamp, `price`: decimal(8,2), "
        "`lines`: array<map<string, int>>>"
    )
    order = {"id": 1, "note": None, "at": NOON, "price": decimal.Decimal("9.99"), "lines": [{"a": 1}]}
    data = found.encode(order)
    values, errors = decoded(found, [data, data + b"x", b""], AVRO_TYPE)
    assert values[0] == {**order, "lines": [[("a", 1)]]}
    assert "1 bytes are left over" in errors[1] and errors[2]


def descriptors() -> str:
    """A descriptor set, made without a compiler."""
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="SMALL", number=0)
    kind.value.add(name="LARGE", number=1)
    order = file.message_type.add(name="Order")
    field = descriptor_pb2.FieldDescriptorProto
    order.field.add(name="id", number=1, type=field.TYPE_INT64, label=field.LABEL_OPTIONAL)
    order.field.add(name="tags", number=2, type=field.TYPE_STRING, label=field.LABEL_REPEATED)
    order.field.add(
        name="kind", number=3, type=field.TYPE_ENUM, type_name=".shop.Kind", label=field.LABEL_OPTIONAL
    )
    inner = order.nested_type.add(name="Place")
    inner.field.add(name="x", number=1, type=field.TYPE_DOUBLE, label=field.LABEL_OPTIONAL)
    order.field.add(
        name="place",
        number=4,
        type=field.TYPE_MESSAGE,
        type_name=".shop.Order.Place",
        label=field.LABEL_OPTIONAL,
    )
    files = descriptor_pb2.FileDescriptorSet(file=[file])
    return base64.b64encode(files.SerializeToString()).decode()


def test_protobuf_goes_both_ways() -> None:
    found = codec("protobuf", descriptors(), "shop.Order")
    assert found.ddl == (
        "struct<`id`: bigint, `tags`: array<string>, `kind`: string, `place`: struct<`x`: double>>"
    )
    order = {"id": 5, "tags": ["a", "b"], "kind": "LARGE", "place": {"x": 0.5}}
    arrow_type = pa.struct(
        [
            pa.field("id", pa.int64()),
            pa.field("tags", pa.list_(pa.string())),
            pa.field("kind", pa.string()),
            pa.field("place", pa.struct([pa.field("x", pa.float64())])),
        ]
    )
    values, errors = decoded(found, [found.encode(order), b"", b"\xff"], arrow_type)
    assert values[0] == order
    assert values[1] == {"id": 0, "tags": [], "kind": "SMALL", "place": None}
    assert errors[2]


def test_columns_are_encoded_with_their_nulls() -> None:
    column = pa.array([{"id": 1, "name": "ü"}, None], pa.struct([("id", pa.int32()), ("name", pa.string())]))
    found = encode_column(codec("json", "id INT, name STRING"), column)
    assert found.to_pylist() == ['{"id": 1, "name": "ü"}'.encode(), None]


def test_schemas_are_read_as_spark_writes_them() -> None:
    fields = parse_columns("`a b` BIGINT NOT NULL, m MAP<STRING, ARRAY<DECIMAL(10, 2)>>, s STRUCT<x: REAL>")
    assert fields == [
        Field("a b", Kind("bigint")),
        Field("m", Kind("map", (Kind("string"), Kind("array", (Kind("decimal"),))))),
        Field("s", Kind("struct", fields=(Field("x", Kind("float")),))),
    ]


@pytest.mark.parametrize(
    "text", ["", "id", "id INT,", "id NUMBER", "a INT, a INT", "x ARRAY<INT", "?", "x " + "ARRAY<" * 50]
)
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(DdlError):
        parse_columns(text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"value.format": "xml"}, "the option value.format is 'xml', it may be binary, string, json"),
        ({"value.schema": "id INT"}, "the option value.schema needs the option value.format"),
        ({"value.format": "json"}, "the option value.schema is missing"),
        ({"value.format": "json", "value.schema": "id NUMBER"}, "there is no type 'number'"),
        ({"value.format": "csv", "value.schema": "a ARRAY<INT>"}, "which CSV cannot hold"),
        ({"value.format": "string", "value.schema": "id INT"}, "value.schema is of no use"),
        ({"value.format": "avro", "value.schema": "{"}, "value.schema is no Avro schema"),
        ({"value.format": "protobuf", "value.schema": "x"}, "value.message is missing"),
        ({"value.format": "protobuf", "value.schema": "eA==", "value.message": "m"}, "no descriptor set"),
    ],
)
def test_mistakes_in_formats_are_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        format_of(options, "value")


def test_the_mode_is_one_of_three() -> None:
    assert mode_of({}) == "permissive" and mode_of({"mode": "DROP"}) == "drop"
    with pytest.raises(OptionError, match="the option mode is 'ignore'"):
        mode_of({"mode": "ignore"})
