"""Single records that Delta and Iceberg tables cannot hold are found over columns, the others are kept."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")

from barnabas.connect.connectors.lake.iceberg_check import IcebergCheck, TableColumns
from barnabas.connect.connectors.lake.lake_check import LakeCheck
from barnabas.connect.data import Column, Field, Records, Schema, Type
from barnabas.connect.data.schema import OPTIONAL_STRING
from barnabas.connect.jobs.refusals import judged


def check(table: pa.Schema | None = None, **more: Any) -> LakeCheck:
    given = {"pk_mode": "none", "pk_fields": (), "deletes": False, "evolves": True, **more}
    return LakeCheck({} if table is None else {"t": table}, **given)


def records(values: list[Any], keys: list[Any] | None = None, schema: Schema | None = None) -> Records:
    count = len(values)
    return Records.of(
        "t",
        Column.of(values, schema),
        Column.of(keys if keys is not None else [None] * count),
        partitions=[0] * count,
        offsets=list(range(count)),
    )


def test_one_value_of_another_type_does_not_change_the_type_of_the_others() -> None:
    values: list[Any] = [{"n": 1}, {"n": "one"}, {"m": "x"}, {"n": 2.5}, {"n": None}, {"n": [1]}, {"n": 2}]
    kept, refused = judged(check(pa.schema([("n", pa.int64())])), "t", records(values))
    assert sorted(refused) == [1, 3, 5]
    assert "n is bigint in the table, and records bring string" in refused[1]
    assert "records bring double" in refused[3] and "array<bigint>" in refused[5]
    [one] = kept
    assert one.records.offsets.to_pylist() == [0, 2, 4, 6]
    assert one.values[1].field("n").to_pylist() == [1, None, None, 2]


def test_values_out_of_range_are_refused_one_by_one() -> None:
    table = pa.schema([("n", pa.int32()), ("d", pa.decimal128(5, 2))])
    values = [{"n": 1, "d": Decimal("1.50")}, {"n": 2**40}, {"n": 3, "d": Decimal("1000.50")}, {"n": -4}]
    kept, refused = judged(check(table), "t", records(values))
    assert sorted(refused) == [1, 2] and "cannot hold 1099511627776" in refused[1]
    assert "d is decimal(5,2) in the table, which cannot hold 1000.50" in refused[2]
    assert kept[0].records.offsets.to_pylist() == [0, 3]


def test_fields_inside_of_structs_lists_and_maps_are_named() -> None:
    there = pa.struct([pa.field("x", pa.int64()), pa.field("y", pa.string(), nullable=False)])
    table = pa.schema([("at", there), ("all", pa.list_(there))])
    values = [
        {"at": {"x": 1, "y": "a"}, "all": [{"x": 1, "y": "a"}]},
        {"at": {"x": 1, "y": None}},
        {"all": [{"x": "one", "y": "a"}, {"x": "two", "y": "b"}]},
        {"at": None, "all": []},
        {"all": None},
    ]
    _, refused = judged(check(table), "t", records(values))
    assert sorted(refused) == [1, 2]
    assert refused[1].startswith("at.y is required") and refused[2].startswith("all[].x is bigint")
    pairs = pa.schema([("m", pa.map_(pa.string(), pa.int32()))])
    kind = Schema(
        type=Type.STRUCT,
        fields=(
            Field(
                "m",
                Schema(
                    type=Type.MAP,
                    optional=True,
                    key=Schema(type=Type.STRING),
                    value=Schema(type=Type.INT64, optional=True),
                ),
            ),
        ),
    )
    maps = [{"m": {"a": 1}}, {"m": None}, {"m": {"a": 1, "b": 2**33}}, {"m": {}}]
    _, refused = judged(check(pairs), "t", records(maps, schema=kind))
    assert list(refused) == [2] and refused[2].startswith("m{} is int in the table, which cannot hold")


def test_required_columns_missing_columns_and_names_that_differ_by_case() -> None:
    table = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int64())])
    values: list[Any] = [{"id": 1}, {"n": 1}, {"ID": 2, "new": None}, {"id": 3, "new": 1}, {"id": 4, "Id": 5}]
    _, refused = judged(check(table, evolves=False), "t", records(values))
    assert sorted(refused) == [1, 3, 4]
    assert refused[1] == "id is required in the table, and null or missing in the record"
    assert refused[3] == "the table has no new, and auto.evolve is false"
    assert "differ by case only" in refused[4]


def test_keys_that_are_missing_or_lack_fields() -> None:
    keyed = {"pk_mode": "record_key", "pk_fields": ("id",)}
    values: list[Any] = [{"n": 1}, {"n": 2}, None, None, {"n": 3}]
    keys: list[Any] = [{"id": 1}, None, None, {"id": 2}, {"other": 3}]
    _, refused = judged(check(**keyed), "t", records(values, keys))
    assert refused == {
        1: "pk.mode=record_key: the record has no key",
        4: "pk.fields names id: the record's key has other",
    }
    _, refused = judged(check(**keyed, deletes=True), "t", records(values, keys))
    assert sorted(refused) == [1, 2, 4]
    _, refused = judged(check(pk_mode="record_key", pk_fields=()), "t", records([{"n": 1}], ["a"]))
    assert "the record's key is a string, not a struct" in refused[0]
    by_value = {"pk_mode": "record_value", "pk_fields": ("id",)}
    _, refused = judged(check(**by_value), "t", records([{"id": 1}, {"n": 1}, None, "text"]))
    assert sorted(refused) == [1, 3] and "the record's value has n" in refused[1]


def test_records_that_broke_a_constraint_are_refused_by_their_place() -> None:
    values = [{"n": 1}, {"n": 2}, None, {"n": 4}]
    _, refused = judged(
        check(broken={"t": {(0, 1): "too much", (1, 3): "of another partition"}, "u": {(0, 0): "other"}}),
        "t",
        records(values),
    )
    assert refused == {1: "too much"}


def test_a_null_key_field_does_not_fit_a_required_column_also_where_the_row_is_deleted() -> None:
    table = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64(), nullable=False)])
    keyed = {"pk_mode": "record_key", "pk_fields": ("id",), "deletes": True}
    keys = [{"id": 1, "x": 1}, {"id": None, "x": 1}]
    _, refused = judged(check(table, **keyed), "t", records([None, None], keys))
    assert list(refused) == [1]


def test_records_with_a_schema_keep_it_when_some_are_refused() -> None:
    kind = Schema(type=Type.STRUCT, fields=(Field("n", OPTIONAL_STRING), Field("m", OPTIONAL_STRING)))
    values = [{"n": None, "m": "a"}, {"n": "x", "m": "b"}]
    kept, refused = judged(check(pa.schema([("n", pa.int64())])), "t", records(values, schema=kind))
    assert list(refused) == [1] and len(kept) == 1 and kept[0].values[0] == kind


def test_a_value_without_one_type_is_refused_and_types_that_no_table_decides_are_divided() -> None:
    values: list[Any] = [{"n": [1, "a"]}, {"n": [1]}, {"n": "a"}, {"n": "b"}]
    kept, refused = judged(check(), "t", records(values))
    assert list(refused) == [0] and "no one type" in refused[0]
    assert [each.records.offsets.to_pylist() for each in kept] == [[1], [2, 3]]


def iceberg(schema: pa.Schema | None, *keys: str, **more: Any) -> IcebergCheck:
    return IcebergCheck({"db.t": TableColumns("db.t", schema, keys)}, upserts=bool(keys), **more)


def test_iceberg_columns_take_what_they_can_hold() -> None:
    table = pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            ("f", pa.float64()),
            ("s", pa.large_string()),
            ("l", pa.large_list(pa.field("element", pa.int32()))),
        ]
    )
    values: list[Any] = [
        {"id": 1, "f": 2, "s": "a", "l": [1], "more": 1},
        {"id": 2**33},
        {"id": None, "s": "b"},
        {"id": 3, "s": 5},
        {"id": 4, "l": [1, 2**33]},
        {"more": 1},
        None,
    ]
    kept, refused = judged(iceberg(table), "t", records(values))
    assert sorted(refused) == [1, 2, 3, 4, 5]
    assert refused[1] == "id is int32 in the table, which cannot hold 8589934592"
    assert refused[2] == "id is required in the table, and null or missing in the record"
    assert refused[4].startswith("l[] is int32") and "none of the fields" in refused[5]
    assert [offset for each in kept for offset in each.records.offsets.to_pylist()] == [0, 6]
    _, refused = judged(iceberg(table, evolves=True), "t", records(values))
    assert sorted(refused) == [2, 3, 5]  # the integers become long


def test_iceberg_rows_that_go_need_their_key_only() -> None:
    table = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64(), nullable=False)])
    values: list[Any] = [
        {"id": 1, "n": 1, "op": "I"},
        {"id": 1, "n": None, "op": "D"},
        {"id": None, "n": 1, "op": "U"},
        {"id": "x", "n": 1, "op": "D"},
        None,
        None,
    ]
    keys: list[Any] = [None, None, {"id": 7}, None, {"id": 1}, None]
    _, refused = judged(iceberg(table, "id", operation=("op",)), "t", records(values, keys))
    assert list(refused) == [3] and refused[3].startswith("id is int64")
    _, refused = judged(iceberg(table, "id"), "t", records(values, keys))
    assert sorted(refused) == [1, 3, 5] and "no row is deleted" in refused[5]
    _, refused = judged(iceberg(table, "id", "other"), "t", records([{"id": 1, "n": 2}]))
    assert refused[0] == "id-columns names other, and the record has id, n"


def test_iceberg_records_go_where_their_field_says() -> None:
    n, s = pa.schema([("n", pa.int64()), ("to", pa.string())]), pa.schema([("n", pa.string())])
    tables = {"db.n": TableColumns("db.n", n, (), "n.*"), "db.s": TableColumns("db.s", s, (), "s")}
    values: list[Any] = [
        {"n": 1, "to": "n1"},
        {"n": "x", "to": "n1"},
        {"n": "x", "to": "s"},
        {"n": 1, "to": "s"},
    ]
    check_routes = IcebergCheck(tables, ("to",))
    _, refused = judged(check_routes, "t", records([*values, {"n": []}, {"n": 5, "to": "z"}]))
    assert sorted(refused) == [1, 3]
    named: list[Any] = [
        {"n": 1, "to": "DB.n"},
        {"n": "x", "to": "db.n"},
        {"to": "n"},
        {"to": "db.new"},
        {"n": 1},
    ]
    _, refused = judged(IcebergCheck(tables, ("to",), True), "t", records(named))
    assert sorted(refused) == [1, 2, 3]
    assert "the name of a table is namespace.table" in refused[2] and "is not there" in refused[3]
    _, refused = judged(IcebergCheck(tables, ("to",), True, True), "t", records(named))
    assert sorted(refused) == [1, 2]
