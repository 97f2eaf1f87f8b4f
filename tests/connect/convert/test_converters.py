"""Converters: both roads of JSON agree, errors keep their index, Kafka's widths, guessed headers."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from barnabas.connect.config import ConfigError
from barnabas.connect.convert.json import JsonConverter
from barnabas.connect.convert.numbers import (
    BooleanConverter,
    ByteArrayConverter,
    DoubleConverter,
    ShortConverter,
)
from barnabas.connect.convert.simple_headers import SimpleHeaderConverter, guess
from barnabas.connect.convert.text import StringConverter
from barnabas.connect.data import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Column,
    Schema,
    Type,
    array,
    decimal,
    mapping,
    struct,
)

ORDER = struct(
    name="Order",
    id=INT64,
    note=OPTIONAL_STRING,
    price=FLOAT64,
    day=DATE,
    at=TIMESTAMP,
    time=TIME,
    tags=array(STRING),
    inner=struct(ok=BOOLEAN, optional=True),
)
VALUE: dict[str, Any] = {
    "id": 1,
    "note": 'say "hi" \\ \n é',
    "price": 1e10,
    "day": dt.date(2024, 2, 29),
    "at": dt.datetime(2024, 2, 29, 1, 2, 3, 4000, tzinfo=dt.UTC),
    "time": dt.time(1, 2, 3, 4000),
    "tags": ["a", 'b"'],
    "inner": {"ok": True},
}
RARE = struct(
    raw=BYTES, price=decimal(2), counts=mapping(STRING, INT64), pairs=mapping(INT32, STRING), f=FLOAT32
)
RARE_VALUE = {"raw": b"\x00\xff", "price": Decimal("-1.28"), "counts": {"x": 1}, "pairs": {1: "a"}, "f": 0.5}


def converter(**config: str) -> JsonConverter:
    made = JsonConverter()
    made.configure({name.replace("_", "."): value for name, value in config.items()}, False)
    return made


@pytest.mark.parametrize(("schema", "value"), [(ORDER, VALUE), (RARE, RARE_VALUE)])
def test_columns_come_back_from_json_with_schemas(schema: Schema, value: dict[str, Any]) -> None:
    column = Column.of([value, None, value], schema)
    data = converter().to_bytes("t", column).data
    assert data[1].as_py() is None
    found = json.loads(data[0].as_py())
    assert found["schema"]["optional"] is False and found.keys() == {"schema", "payload"}
    read = converter().from_bytes("t", data)
    assert not read.failures and [part.indices for part in read.parts] == [[0, 1, 2]]
    assert read.parts[0].column.schema == schema
    assert read.parts[0].column.pylist() == column.pylist()
    slow = converter()._read_one_by_one(data)
    assert slow.parts[0].column.pylist() == column.pylist()


def test_json_is_what_connect_writes() -> None:
    schema = struct(name="S", a=INT32, p=decimal(2), b=OPTIONAL_STRING, d=FLOAT64)
    column = Column.of([{"a": 1, "p": Decimal("1.28"), "b": None, "d": 1e7}], schema)
    assert converter().to_bytes("t", column).data[0].as_py() == (
        b'{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"a"},'
        b'{"type":"bytes","optional":false,"name":"org.apache.kafka.connect.data.Decimal","version":1,'
        b'"parameters":{"scale":"2"},"field":"p"},{"type":"string","optional":true,"field":"b"},'
        b'{"type":"double","optional":false,"field":"d"}],"optional":false,"name":"S"},'
        b'"payload":{"a":1,"p":"AIA=","b":null,"d":1.0E7}}'
    )
    plain = converter(schemas_enable="false", decimal_format="numeric").to_bytes("t", column).data[0].as_py()
    assert plain == b'{"a":1,"p":1.28,"b":null,"d":1.0E7}'


def test_nulls_with_and_without_schema_differ() -> None:
    optional = Column.of([None], OPTIONAL_STRING)
    assert json.loads(converter().to_bytes("t", optional).data[0].as_py())["payload"] is None
    assert converter(schemas_enable="false").to_bytes("t", optional).data[0].as_py() == b"null"
    assert converter().to_bytes("t", Column.nulls(1)).data[0].as_py() is None


def test_bad_records_are_named_by_their_index() -> None:
    good = converter().to_bytes("t", Column.of([{"a": 1}], struct(a=INT32))).data[0].as_py()
    records = [good, b"{", None, b'{"a":1}', good.replace(b'"a":1}', b'"a":"x"}'), good]
    read = converter().from_bytes("t", pa.array(records, pa.binary()))
    assert sorted(read.failures) == [1, 3, 4]
    assert "schemas.enable" in str(read.failures[3]) and "a must be int32" in str(read.failures[4])
    assert [(part.indices, part.column.pylist()) for part in read.parts] == [
        ([0, 2, 5], [{"a": 1}, None, {"a": 1}])
    ]


def test_a_missing_required_field_fails_its_record_only() -> None:
    good = converter().to_bytes("t", Column.of([{"a": 1}], struct(a=INT32))).data[0].as_py()
    bad = good.replace(b'{"a":1}', b"{}")
    read = converter().from_bytes("t", pa.array([good, bad], pa.binary()))
    assert list(read.failures) == [1] and read.parts[0].indices == [0]


def test_schemas_that_change_start_another_part() -> None:
    one = converter().to_bytes("t", Column.of([{"a": 1}], struct(a=INT32))).data[0].as_py()
    two = converter().to_bytes("t", Column.of([{"a": "x"}], struct(a=STRING))).data[0].as_py()
    read = converter().from_bytes("t", pa.array([one, one, two, one], pa.binary()))
    assert [part.indices for part in read.parts] == [[0, 1], [2], [3]]


def test_defaults_take_the_place_of_nulls() -> None:
    schema = struct(a=Schema(type=Type.INT32, default=7, optional=True))
    data = converter(replace_null_with_default="false").to_bytes("t", Column.of([{"a": None}], schema)).data
    assert converter().from_bytes("t", data).parts[0].column.pylist() == [{"a": 7}]
    kept = converter(replace_null_with_default="false").from_bytes("t", data)
    assert kept.parts[0].column.pylist() == [{"a": None}]


def test_a_fixed_schema_reads_plain_payloads() -> None:
    text = '{"type":"struct","fields":[{"type":"int32","optional":false,"field":"a"}]}'
    read = converter(schema_content=text).from_bytes("t", pa.array([b'{"a":1}'], pa.binary()))
    assert read.parts[0].column.pylist() == [{"a": 1}]
    with pytest.raises(ConfigError, match="schema"):
        converter(schema_content="[]")


def test_plain_json_has_no_schema() -> None:
    read = converter(schemas_enable="false").from_bytes(
        "t", pa.array([b'{"a":[1,2.5,null]}', b"3"], pa.binary())
    )
    assert read.parts[0].column.schema is None
    assert read.parts[0].column.pylist() == [{"a": [1, 2.5, None]}, 3]
    assert (
        converter().to_bytes("t", Column.of([{"a": 1}])).data[0].as_py()
        == b'{"schema":null,"payload":{"a":1}}'
    )


def test_text_is_written_as_java_prints() -> None:
    made = StringConverter()
    made.configure({}, False)
    values = Column.of([1.7e12, 0.0, 86_400_000.0, 1.5, 0.001, 1e-4, float("nan"), -12.0, None], FLOAT64)
    expected = [b"1.7E12", b"0.0", b"8.64E7", b"1.5", b"0.001", b"1.0E-4", b"NaN", b"-12.0", None]
    assert made.to_bytes("t", values).data.to_pylist() == expected
    rows = Column.of([{"a": 1, "b": None, "c": "x"}], struct(a=INT32, b=OPTIONAL_STRING, c=STRING))
    assert made.to_bytes("t", rows).data.to_pylist() == [b"Struct{a=1,c=x}"]
    bad = made.from_bytes("t", pa.array([b"\xff", b"ok"], pa.binary()))
    assert bad.parts[0].column.pylist() == ["\ufffd", "ok"]


def test_numbers_have_kafkas_widths() -> None:
    for kind, value, data in (
        (ShortConverter(), -2, b"\xff\xfe"),
        (DoubleConverter(), 1.5, b"\x3f\xf8" + bytes(6)),
        (BooleanConverter(), True, b"\x01"),
    ):
        kind.configure({}, True)
        read = kind.from_bytes("t", pa.array([data, None, b"xxx"], pa.binary()))
        assert read.parts[0].column.pylist() == [value, None] and list(read.failures) == [2]
        assert kind.to_bytes("t", read.parts[0].column).data.to_pylist() == [data, None]
    raw = ByteArrayConverter()
    raw.configure({}, False)
    assert list(raw.to_bytes("t", Column.of([b"x", 1])).failures) == [1]
    assert list(raw.to_bytes("t", Column.of(["x"], STRING)).failures) == [0]


@pytest.mark.parametrize(
    ("text", "value", "schema"),
    [
        ("true", True, BOOLEAN),
        ("127", 127, INT8),
        ("128", 128, INT16),
        ("-40000", -40000, INT32),
        ("3000000000", 3_000_000_000, INT64),
        ("1.5", 1.5, FLOAT32),
        ("1E300", 1e300, None),
        ("2024-02-29", dt.date(2024, 2, 29), DATE),
        ("01:02:03.004Z", dt.time(1, 2, 3, 4000), TIME),
        ("[1, 2, 300]", [1, 2, 300], array(INT16)),
        ('{"a":1}', {"a": 1}, mapping(STRING, INT8)),
        ("hello world", "hello world", STRING),
        ("[a", "[a", STRING),
        ("", "", STRING),
        ("null", None, None),
    ],
)
def test_headers_are_guessed(text: str, value: object, schema: Schema | None) -> None:
    found, kind = guess(text)
    assert found == value
    if schema is not None:
        assert kind == schema
    back = SimpleHeaderConverter().to_header("t", "h", found, kind)
    assert back is None or guess(back.decode()) == (found, kind)
