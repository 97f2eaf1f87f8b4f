"""Rows survive every format that can hold them; random columns, random values."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal as Number
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.sql.formats.codecs import row_codec
from barnabas.sql.metastore.schemas import Column, Format
from barnabas.sql.types.sql_types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT_MAX,
    INT_MIN,
    INTEGER,
    LONG_MAX,
    LONG_MIN,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Map,
    SqlType,
    Struct,
)

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INTEGER: st.integers(INT_MIN, INT_MAX),
    BIGINT: st.integers(LONG_MIN, LONG_MAX),
    DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    STRING: TEXT,
    BYTES: st.binary(max_size=12),
    DATE: st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    TIME: st.integers(0, 86_399_999).map(lambda ms: (dt.datetime.min + dt.timedelta(milliseconds=ms)).time()),
    TIMESTAMP: st.integers(-62_135_596_800_000, 253_402_300_799_000).map(
        lambda ms: dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=ms)
    ),
}
SCALARS = st.sampled_from([*VALUES, Decimal(12, 3), Decimal(4, 0)])
NAMES = st.lists(st.sampled_from(["A", "B", "C1", "D_E", "FF", "G"]), min_size=1, max_size=4, unique=True)


def kinds(depth: int = 2) -> st.SearchStrategy[SqlType]:
    if depth == 0:
        return SCALARS
    inner = kinds(depth - 1)
    return st.one_of(
        SCALARS,
        inner.map(Array),
        inner.map(lambda kind: Map(STRING, kind)),
        st.tuples(NAMES, st.lists(inner, min_size=4, max_size=4)).map(
            lambda pair: Struct(tuple(zip(pair[0], pair[1], strict=False)))
        ),
    )


def values(kind: SqlType, *, nulls: bool = True) -> st.SearchStrategy[Any]:
    if isinstance(kind, Decimal):
        limit = 10**kind.precision - 1
        found: st.SearchStrategy[Any] = st.integers(-limit, limit).map(
            lambda unscaled: Number(unscaled).scaleb(-kind.scale)
        )
    elif isinstance(kind, Array):
        found = st.lists(values(kind.item, nulls=nulls), max_size=3)
    elif isinstance(kind, Map):
        found = st.dictionaries(TEXT, values(kind.value, nulls=nulls), max_size=3)
    elif isinstance(kind, Struct):
        found = st.fixed_dictionaries({name: values(inner, nulls=nulls) for name, inner in kind.fields})
    else:
        found = VALUES[kind]
    return st.one_of(st.none(), found) if nulls else found


@st.composite
def tables(draw: Any, kind: st.SearchStrategy[SqlType], nulls: bool = True) -> tuple[list[Column], Any]:
    columns = [Column(name, draw(kind)) for name in draw(NAMES)]
    row = {each.name: draw(values(each.kind, nulls=nulls)) for each in columns}
    return columns, row


@settings(max_examples=50, suppress_health_check=list(HealthCheck), deadline=None)
@given(tables(kinds()))
def test_json_gives_back_what_was_written(case: Any) -> None:
    columns, row = case
    codec = row_codec(Format("JSON"), columns, is_key=False)
    assert codec.from_bytes(codec.to_bytes(row) or b"") == row


@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
@given(tables(SCALARS))
def test_delimited_gives_back_all_but_empty_texts(case: Any) -> None:
    columns, row = case
    codec = row_codec(Format("DELIMITED"), columns, is_key=False)
    data = codec.to_bytes(row)
    empty = {name: None if value in ("", b"") else value for name, value in row.items()}
    if data is None:
        assert len(columns) == 1 and row[columns[0].name] is None
    else:
        assert codec.from_bytes(data) == empty


@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    st.sampled_from([INTEGER, BIGINT, DOUBLE, STRING, BYTES]).flatmap(
        lambda k: st.tuples(st.just(k), VALUES[k])
    )
)
def test_kafka_gives_back_the_one_column(case: Any) -> None:
    kind, value = case
    codec = row_codec(Format("KAFKA"), [Column("K", kind)], is_key=True)
    assert codec.from_bytes(codec.to_bytes({"K": value}) or b"") == {"K": value}


@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(tables(SCALARS, nulls=False))
def test_protobuf_without_a_registry_gives_back_rows_without_nulls(case: Any) -> None:
    columns, row = case
    codec = row_codec(Format("PROTOBUF_NOSR"), columns, is_key=False)
    assert codec.from_bytes(codec.to_bytes(row) or b"") == row


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_single_null_is_a_record_when_wrapped_and_a_tombstone_when_bare(wrapped: bool) -> None:
    codec = row_codec(Format("JSON", is_wrapped=wrapped), [Column("V", INTEGER)], is_key=False)
    assert codec.to_bytes({"V": None}) == (b'{"V":null}' if wrapped else None)
    assert codec.to_bytes({"V": 3}) == (b'{"V":3}' if wrapped else b"3")


def test_doubles_that_are_no_numbers_survive_json() -> None:
    codec = row_codec(Format("JSON"), [Column("V", DOUBLE)], is_key=False)
    for value in (math.inf, -math.inf):
        assert codec.from_bytes(codec.to_bytes({"V": value}) or b"") == {"V": value}
    assert math.isnan((codec.from_bytes(codec.to_bytes({"V": math.nan}) or b"") or {})["V"])
