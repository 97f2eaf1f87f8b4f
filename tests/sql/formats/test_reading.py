"""What each format takes for a column, and what it refuses, as ksqlDB does."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as Number
from typing import Any

import pytest

from barnabas.sql.errors import SqlError
from barnabas.sql.formats.codecs import row_codec
from barnabas.sql.formats.contract import BadBytes, check_columns
from barnabas.sql.formats.values import java_double
from barnabas.sql.metastore.schemas import Column, Format
from barnabas.sql.types.sql_types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Map,
    SqlType,
    Struct,
)


def json_value(kind: SqlType, text: str) -> Any:
    codec = row_codec(Format("JSON"), [Column("V", kind)], is_key=False)
    return (codec.from_bytes(b'{"V":%s}' % text.encode()) or {})["V"]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (INTEGER, '"12"', 12),
        (INTEGER, "3.9", 3),
        (BIGINT, '"-7"', -7),
        (DOUBLE, '"1.5"', 1.5),
        (DOUBLE, "3", 3.0),
        (STRING, "1.10", "1.10"),
        (STRING, "true", "true"),
        (STRING, '{"a": [1, 2.50]}', '{"a":[1,2.50]}'),
        (STRING, "12345678901", "12345678901"),
        (BYTES, '"aGk="', b"hi"),
        (DATE, "1", dt.date(1970, 1, 2)),
        (TIME, "61001", dt.time(0, 1, 1, 1000)),
        (TIMESTAMP, "1000", dt.datetime(1970, 1, 1, 0, 0, 1)),
        (TIMESTAMP, '"1000"', dt.datetime(1970, 1, 1, 0, 0, 1)),
        (Decimal(5, 2), "1.1", Number("1.10")),
        (Decimal(5, 2), '"1.25"', Number("1.25")),
        (Array(INTEGER), '["1", null]', [1, None]),
        (Map(STRING, BIGINT), '{"x": 1}', {"x": 1}),
        (Struct((("INNER", INTEGER),)), '{"inner": 4, "other": 1}', {"INNER": 4}),
        (BOOLEAN, "null", None),
    ],
)
def test_json_is_read_freely(kind: SqlType, text: str, value: Any) -> None:
    assert json_value(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (INTEGER, '"a"'),
        (INTEGER, '"3000000000"'),
        (INTEGER, "true"),
        (BOOLEAN, '"true"'),
        (BYTES, '"*"'),
        (Decimal(3, 1), "1.15"),
        (Decimal(3, 1), "1234"),
        (Array(INTEGER), "1"),
        (Map(STRING, INTEGER), "[]"),
        (Struct((("A", INTEGER),)), '"x"'),
        (TIMESTAMP, "99999999999999999"),
    ],
)
def test_json_that_does_not_fit_is_refused_with_the_columns_name(kind: SqlType, text: str) -> None:
    with pytest.raises(BadBytes, match="V"):
        json_value(kind, text)


def test_field_names_match_in_any_case_and_the_exact_one_comes_first() -> None:
    codec = row_codec(Format("JSON"), [Column("NAME", STRING), Column("ID", INTEGER)], is_key=False)
    assert codec.from_bytes(b'{"name":"x","Name":"y","id":1}') == {"NAME": "x", "ID": 1}
    assert codec.from_bytes(b'{"name":"x","NAME":"y","unknown":[]}') == {"NAME": "y", "ID": None}


def test_text_that_is_no_json_is_refused() -> None:
    codec = row_codec(Format("JSON"), [Column("A", INTEGER)], is_key=False)
    for data in (b"", b"{", b"[1]", b"1", b"\xff", b"[" * 100_000):
        with pytest.raises(BadBytes):
            codec.from_bytes(data)


def test_a_single_key_column_is_bare_and_several_are_a_record() -> None:
    one = row_codec(Format("JSON"), [Column("ID", INTEGER)], is_key=True)
    assert one.to_bytes({"ID": 10}) == b"10"
    assert one.from_bytes(b"10") == {"ID": 10}
    two = row_codec(Format("JSON"), [Column("A", INTEGER), Column("B", STRING)], is_key=True)
    assert two.to_bytes({"A": 1, "B": None}) == b'{"A":1,"B":null}'


def test_delimited_counts_its_cells_and_quotes_them() -> None:
    columns = [Column("A", STRING), Column("B", INTEGER)]
    codec = row_codec(Format("DELIMITED"), columns, is_key=False)
    assert codec.to_bytes({"A": 'x,"y"', "B": 1}) == b'"x,""y""",1'
    assert codec.from_bytes(b"a,") == {"A": "a", "B": None}
    for data in (b"a", b"a,1,2", b"a,x", b"a,1\nb,2"):
        with pytest.raises(BadBytes):
            codec.from_bytes(data)
    spaced = row_codec(Format("DELIMITED", {"delimiter": "SPACE"}), columns, is_key=False)
    assert spaced.from_bytes(b"a 1") == {"A": "a", "B": 1}
    tabbed = row_codec(Format("DELIMITED", {"delimiter": "TAB"}), columns, is_key=False)
    assert tabbed.to_bytes({"A": "a", "B": 1}) == b"a\t1"


def test_kafka_takes_no_other_length() -> None:
    codec = row_codec(Format("KAFKA"), [Column("A", INTEGER)], is_key=False)
    assert codec.to_bytes({"A": 1}) == b"\0\0\0\1"
    assert codec.to_bytes({"A": None}) is None
    with pytest.raises(BadBytes, match="5 bytes"):
        codec.from_bytes(b"12345")


@pytest.mark.parametrize(
    ("form", "columns", "is_key", "words"),
    [
        ("KAFKA", [Column("A", INTEGER), Column("B", INTEGER)], True, "single field"),
        ("KAFKA", [Column("A", BOOLEAN)], False, "BOOLEAN"),
        ("DELIMITED", [Column("A", Array(INTEGER))], False, "ARRAY"),
        ("NONE", [Column("A", INTEGER)], True, "no columns"),
        ("NONE", [], False, "keys"),
        ("JSON", [Column("A", Map(STRING, INTEGER))], True, "Map keys"),
        ("JASON", [], False, "JSON"),
    ],
)
def test_formats_refuse_columns_that_they_cannot_hold(
    form: str, columns: list[Column], is_key: bool, words: str
) -> None:
    with pytest.raises(SqlError, match=words):
        check_columns(Format(form), columns, is_key=is_key)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (12345678.9, "1.23456789E7"),
        (1e21, "1.0E21"),
        (-0.0, "-0.0"),
        (100.0, "100.0"),
    ],
)
def test_doubles_are_printed_as_in_java(value: float, text: str) -> None:
    assert java_double(value) == text
