"""Schemas and columns: types in Arrow and Spark and back, values checked, records taken by index."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal

import pyarrow as pa
import pytest

from barnabas.connect.data import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT64,
    INT16,
    INT64,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Column,
    DataError,
    Header,
    Records,
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
    price=decimal(2),
    day=DATE,
    at=TIMESTAMP,
    time=TIME,
    tags=array(STRING),
    counts=mapping(STRING, OPTIONAL_INT64),
    inner=struct(ok=BOOLEAN, raw=BYTES, optional=True),
)
VALUE = {
    "id": 1,
    "note": None,
    "price": Decimal("1.50"),
    "day": dt.date(2024, 2, 29),
    "at": dt.datetime(2024, 2, 29, 1, 2, 3, 4000, tzinfo=dt.UTC),
    "time": dt.time(1, 2, 3, 4000),
    "tags": ["a", "b"],
    "counts": {"x": 1, "y": None},
    "inner": {"ok": True, "raw": b"\x00"},
}


def test_values_come_back_from_a_column_as_they_went_in() -> None:
    column = Column.of([VALUE, None, {**VALUE, "inner": None}], ORDER)
    assert column.pylist() == [VALUE, None, {**VALUE, "inner": None}]
    assert column.take([2, 0]).pylist()[1] == VALUE
    assert column.is_null().to_pylist() == [False, True, False]


def test_a_schema_survives_arrow_except_for_names() -> None:
    again = Schema.of_arrow(ORDER.arrow, "Order")
    assert again.field_names == ORDER.field_names
    assert again.field("price") == decimal(2, precision=38)
    for name in ("id", "note", "day", "at", "time", "tags", "counts", "inner"):
        assert again.field(name) == ORDER.field(name)


def test_a_schema_survives_spark_except_for_the_time_of_day() -> None:
    pytest.importorskip("pyspark")
    again = Schema.of_spark(ORDER.spark, "Order")
    for name in ("id", "note", "day", "at", "tags", "counts", "inner"):
        assert again.field(name) == ORDER.field(name)
    found = again.field("time")
    assert found is not None and found.type is Type.INT32


def test_a_required_field_that_is_null_is_named() -> None:
    with pytest.raises(DataError, match=r"'a\.b' is null \(value 1"):
        Column.of([{"a": {"b": 1}}, {"a": {}}], struct(a=struct(b=INT64)))
    with pytest.raises(DataError, match=r"a\[\]"):
        Column.of([{"a": [1, None]}], struct(a=array(INT64)))
    allowed = Schema(type=Type.INT64, default=7)
    assert Column.of([{"a": None}], struct(a=allowed)).pylist() == [{"a": None}]


def test_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="int16"):
        Column.of([70_000], INT16)
    with pytest.raises(DataError):
        Column.of(["x"], FLOAT64)
    with pytest.raises(DataError, match="two fields named 'a'"):
        Schema(type=Type.STRUCT, fields=(*struct(a=INT64).fields, *struct(a=STRING).fields))
    with pytest.raises(DataError, match="no counterpart"):
        Schema.of_arrow(pa.duration("s"))


def test_schemas_are_values() -> None:
    assert struct(a=INT64) == struct(a=INT64) != struct(a=OPTIONAL_INT64)
    assert pickle.loads(pickle.dumps(ORDER)) == ORDER
    assert len({ORDER, struct(a=INT64), struct(a=INT64)}) == 2


def test_records_are_taken_by_index_and_read_row_by_row() -> None:
    records = Records.of(
        "t",
        Column.of([{"a": 1}, None, {"a": 3}], struct(a=INT64)),
        Column.of(["x", "y", "z"], STRING),
        timestamps=[1, None, 3],
        headers=[(), (Header("h", 1),), ()],
        offsets=[10, 11, 12],
    )
    rows = list(records.take([1, 2]).rows())
    assert [(row.topic, row.key, row.value, row.timestamp, row.offset) for row in rows] == [
        ("t", "y", None, None, 11),
        ("t", "z", {"a": 3}, 3, 12),
    ]
    assert rows[0].headers == (Header("h", 1),) and rows[1].value_schema == struct(a=INT64)
