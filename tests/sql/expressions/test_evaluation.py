"""Operators, casts, nulls: what an expression gives for a row, and of which type."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest
from tests.sql.expressions.evaluating import Log, kind_of, resolved, value_of

from barnabas.sql.errors import SqlError

TYPES = {"I": "INT", "B": "BIGINT", "D": "DOUBLE", "C": "DECIMAL(4, 2)", "S": "STRING", "T": "TIMESTAMP"}
TYPES |= {"A": "ARRAY<INT>", "M": "MAP<STRING, INT>", "R": "STRUCT<X INT, Y STRING>", "O": "BOOLEAN"}
ROW: dict[str, Any] = {
    "I": 7,
    "B": 2**40,
    "D": 2.5,
    "C": Decimal("12.34"),
    "S": "hello",
    "T": dt.datetime(2024, 5, 6, 7, 8, 9),
    "A": [1, None, 3],
    "M": {"k": 4},
    "R": {"X": 5, "Y": "y"},
    "O": True,
}


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("I + 1", "INTEGER", 8),
        ("I / 2", "INTEGER", 3),
        ("-I / 2", "INTEGER", -3),
        ("-I % 4", "INTEGER", -3),
        ("I + B", "BIGINT", 2**40 + 7),
        ("I + D", "DOUBLE", 9.5),
        ("2147483647 + 1", "INTEGER", -(2**31)),
        ("C + 1", "DECIMAL(13, 2)", Decimal("13.34")),
        ("C * C", "DECIMAL(9, 4)", Decimal("152.2756")),
        ("C / 3.0", "DECIMAL(9, 6)", Decimal("4.113333")),
        ("C % 5", "DECIMAL(4, 2)", Decimal("2.34")),
        ("C + D", "DOUBLE", pytest.approx(14.84)),
        ("S || '!' || S", "STRING", "hello!hello"),
        ("S + '!'", "STRING", "hello!"),
        ("I = 7.0", "BOOLEAN", True),
        ("I <> 7", "BOOLEAN", False),
        ("S = 'hello' AND I > 6", "BOOLEAN", True),
        ("I = '7'", "BOOLEAN", True),
        ("O = 'yes'", "BOOLEAN", True),
        ("T >= '2024-05-06'", "BOOLEAN", True),
        ("I BETWEEN 7 AND 8", "BOOLEAN", True),
        ("I NOT BETWEEN 7 AND 8", "BOOLEAN", False),
        ("I IN (1, 7)", "BOOLEAN", True),
        ("S NOT IN ('a', 'b')", "BOOLEAN", True),
        ("S LIKE 'h_l%'", "BOOLEAN", True),
        ("'50%' LIKE '50!%' ESCAPE '!'", "BOOLEAN", True),
        ("CASE WHEN I > 8 THEN 'big' WHEN I > 6 THEN 'mid' ELSE 'low' END", "STRING", "mid"),
        ("CASE I WHEN 7 THEN 1 ELSE 2.5e0 END", "DOUBLE", 1.0),
        ("CASE WHEN I > 8 THEN 'big' END", "STRING", None),
        ("A[1]", "INTEGER", 1),
        ("A[-1]", "INTEGER", 3),
        ("A[9]", "INTEGER", None),
        ("M['k']", "INTEGER", 4),
        ("M['no']", "INTEGER", None),
        ("R->Y", "STRING", "y"),
        ("STRUCT(a := I, b := S)->b", "STRING", "hello"),
        ("ARRAY[1, 2.5, NULL]", "ARRAY<DECIMAL(11, 1)>", [Decimal("1.0"), Decimal("2.5"), None]),
        ("MAP('a' := I, 'b' := NULL)", "MAP<STRING, INTEGER>", {"a": 7, "b": None}),
        ("TRANSFORM(A, x => x + I)", "ARRAY<INTEGER>", [8, None, 10]),
        ("FILTER(A, x => x IS NOT NULL)", "ARRAY<INTEGER>", [1, 3]),
        ("REDUCE(A, 0, (s, x) => s + COALESCE(x, 10))", "INTEGER", 14),
        ("TRANSFORM(M, (k, v) => UCASE(k), (k, v) => v + 1)", "MAP<STRING, INTEGER>", {"K": 5}),
        ("COALESCE(NULL, S)", "STRING", "hello"),
        ("CAST(D AS INT)", "INTEGER", 2),
        ("CAST(I AS STRING)", "STRING", "7"),
        ("CAST(1e10 AS STRING)", "STRING", "1.0E10"),
        ("CAST(D AS STRING)", "STRING", "2.5"),
        ("CAST(C AS DECIMAL(3, 1))", "DECIMAL(3, 1)", Decimal("12.3")),
        ("CAST(2.345 AS DECIMAL(3, 2))", "DECIMAL(3, 2)", Decimal("2.35")),
        ("CAST(T AS STRING)", "STRING", "2024-05-06T07:08:09.000"),
        ("CAST(T AS DATE)", "DATE", dt.date(2024, 5, 6)),
        ("CAST('2024-05-06T10:00+02:00' AS TIMESTAMP)", "TIMESTAMP", dt.datetime(2024, 5, 6, 8)),
        ("CAST(R AS STRING)", "STRING", "Struct{X=5,Y=y}"),
        ("CAST(A AS ARRAY<STRING>)", "ARRAY<STRING>", ["1", None, "3"]),
        ("CAST(R AS STRUCT<Y STRING, Z INT>)", "STRUCT<`Y` STRING, `Z` INTEGER>", {"Y": "y", "Z": None}),
        ("CAST('ye' AS BOOLEAN)", "BOOLEAN", True),
        ("1.0e0 / 0", "DOUBLE", math.inf),
        ("DATEADD(DAYS, I, CAST(T AS DATE))", "DATE", dt.date(2024, 5, 13)),
    ],
)
def test_an_expression_has_its_type_and_value(text: str, kind: str, value: Any) -> None:
    assert str(kind_of(text, **TYPES)) == kind
    found = value_of(text, ROW, **TYPES)
    assert found == value
    assert type(found) is type(value) or not isinstance(value, int | float | str)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I + 1", None),
        ("S || 'a'", None),
        ("I = 1", False),
        ("I <> 1", False),
        ("NOT (I = 1)", True),
        ("I IN (1, NULL)", False),
        ("S LIKE '%'", False),
        ("I BETWEEN 0 AND 9", False),
        ("I IS NULL", True),
        ("I IS NOT NULL", False),
        ("I IS DISTINCT FROM 1", True),
        ("I IS DISTINCT FROM NULL", False),
        ("I IS NOT DISTINCT FROM B", True),
        ("CONCAT('a', S, 'b')", "ab"),
        ("CASE WHEN O THEN 1 ELSE 2 END", 2),
        ("O AND TRUE", None),
        ("O OR TRUE", True),
        ("A[1]", None),
        ("R->X", None),
        ("CAST(I AS STRING)", None),
        ("UCASE(S)", None),
    ],
)
def test_the_rules_of_null(text: str, value: Any) -> None:
    assert value_of(text, dict.fromkeys(TYPES), **TYPES) is value or (
        value_of(text, dict.fromkeys(TYPES), **TYPES) == value
    )


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("I / 0", "/ by zero"),
        ("I % 0", "/ by zero"),
        ("C / 0", "/ by zero"),
        ("CAST(S AS INT)", "'hello' is no INTEGER"),
        ("CAST(S AS TIMESTAMP)", "'hello' is no timestamp"),
        ("CAST(B AS DECIMAL(3, 1))", "overflow"),
        ("COALESCE(I / 0, 5)", "/ by zero"),
    ],
)
def test_what_raises_is_null_and_is_told(text: str, cause: str) -> None:
    log = Log()
    assert value_of(text, ROW, log, **TYPES) is None
    [told] = log.causes
    assert cause in told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("I + S", "Unsupported arithmetic types. INTEGER STRING: ADD in I + S"),
        ("I = S", r"Cannot compare I (INTEGER) to S (STRING) with EQUAL."),
        ("A < A", "Cannot compare A (ARRAY<INTEGER>) to A (ARRAY<INTEGER>) with LESS_THAN."),
        ("O < O", "Cannot compare"),
        ("I LIKE 'a'", "Like condition must be between strings: I is INTEGER"),
        ("R->Q", "Could not find field 'Q' in 'R'."),
        ("I->X", "only a STRUCT has fields"),
        ("S[1]", "only ARRAY and MAP are indexed"),
        ("SS", "SELECT column 'SS' cannot be resolved."),
        ("CAST(A AS INT)", "Cast of ARRAY<INTEGER> to INTEGER is not supported"),
        ("ARRAY[NULL]", "Cannot construct an array with all NULL elements"),
        ("ARRAY[1, TRUE]", "of the same type: INTEGER and BOOLEAN"),
        ("CAST(S AS ADDRESS)", "Cannot resolve unknown type: ADDRESS."),
        ("COUNT(*)", "Aggregate functions are not allowed in SELECT"),
        ("I = 'seven'", "'seven' is no INTEGER"),
        ("NOT I", "I is INTEGER: BOOLEAN is needed"),
        ("STRUCT(a := 1, a := 2)", "Duplicate field names"),
    ],
)
def test_an_expression_without_a_type_says_why_and_where(text: str, message: str) -> None:
    with pytest.raises(SqlError) as error:
        resolved(text, **TYPES)
    assert message in error.value.message
    assert error.value.at is not None


def test_ambiguous_and_unknown_names_have_hints() -> None:
    with pytest.raises(SqlError, match=r"line 1, column 5: SELECT column 'AMOUN' .*Did you mean AMOUNT\?"):
        resolved("1 + amoun", AMOUNT="INT")
