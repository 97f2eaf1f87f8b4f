"""The examples of the table of functions hold for texts too: signatures are found, types are right."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest
from tests.sql.expressions.evaluating import kind_of, value_of
from tests.sql.functions.test_examples import EXAMPLES, expected

from barnabas.sql.errors import SqlError
from barnabas.sql.types.sql_types import Array, SqlType

OTHER_TYPES = {  # literals with a point are decimals, the functions take doubles
}


@pytest.mark.parametrize(("call", "result"), [each for each in EXAMPLES if "EXPLODE" not in each[0]])
def test_an_example_of_the_table_holds(call: str, result: str) -> None:
    found, kind = value_of(call), kind_of(call)
    wanted = None if isinstance(found, dt.date | dt.time) else expected(result)
    if isinstance(found, Decimal):
        assert str(found) == result
    elif isinstance(found, float) and math.isnan(wanted):
        assert math.isnan(found)
    elif isinstance(found, dt.date | dt.time):
        assert kind.name in ("DATE", "TIME", "TIMESTAMP")
    elif isinstance(found, float) and math.isfinite(found):
        assert found == pytest.approx(wanted, rel=1e-15)
    else:
        assert found == wanted
    assert fits(found, kind)


def fits(value: object, kind: SqlType) -> bool:
    if isinstance(kind, Array):
        assert isinstance(value, list) or value is None
        return all(fits(each, kind.item) for each in value or ())
    python = {
        "BOOLEAN": bool,
        "INTEGER": int,
        "BIGINT": int,
        "DOUBLE": float,
        "DECIMAL": Decimal,
        "STRING": str,
        "BYTES": bytes,
        "DATE": dt.date,
        "TIME": dt.time,
        "TIMESTAMP": dt.datetime,
        "MAP": dict,
        "STRUCT": dict,
    }
    return value is None or type(value) is python[kind.base]


def test_an_overload_is_chosen_by_the_least_widening() -> None:
    assert str(kind_of("ABS(A)", A="INT")) == "INTEGER"
    assert str(kind_of("ABS(A)", A="DECIMAL(6, 2)")) == "DECIMAL(6, 2)"
    assert str(kind_of("ROUND(A)", A="DECIMAL(6, 2)")) == "DECIMAL(4, 0)"
    assert str(kind_of("SQRT(A)", A="DECIMAL(6, 2)")) == "DOUBLE"
    assert str(kind_of("GREATEST(A, B)", A="INT", B="BIGINT")) == "BIGINT"
    assert str(kind_of("COALESCE(A, 1.5)", A="DOUBLE")) == "DOUBLE"
    assert str(kind_of("TRANSFORM(A, x => CAST(x AS STRING))", A="ARRAY<INT>")) == "ARRAY<STRING>"
    assert str(kind_of("REDUCE(A, 0.0e0, (s, x) => s + x)", A="ARRAY<INT>")) == "DOUBLE"
    assert value_of("ABS(A)", {"A": None}, A="INT") is None


def test_what_no_overload_takes_names_the_valid_ones() -> None:
    with pytest.raises(SqlError) as error:
        kind_of("UCASE(A)", A="INT")
    assert error.value.message == (
        "Function 'UCASE' does not accept parameters (INTEGER).\nValid alternatives are:\nUCASE(STRING)"
    )
    assert str(error.value.at) == "line 1, column 1"
    with pytest.raises(
        SqlError, match=r"Can't find any functions with the name 'UKASE'. Did you mean UCASE\?"
    ):
        kind_of("UKASE('a')")
