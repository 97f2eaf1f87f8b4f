"""The examples of the table of functions hold, and functions keep their rules of null."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from typing import Any

import pytest

from barnabas.sql.errors import EvaluationError, SqlError
from barnabas.sql.functions.aggregates import aggregate
from barnabas.sql.functions.builtin import AGGREGATES, CODES, code_of
from barnabas.sql.functions.registry import table
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.parsing import parse_expression
from barnabas.sql.types import sql_types as kinds

# Functions without code: the grammar has them as expressions of their own, or docs/gaps.md lists them.
CONSTRUCTS = {"ARRAY", "CAST", "MAP", "STRUCT"}
WORDS = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
    "true": True,
    "false": False,
    "NULL": None,
}
OPERATORS: dict[str, Any] = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def evaluated(expression: tree.Expression, names: dict[str, Any]) -> Any:
    """The value of an example: constants and calls, without types."""
    match expression:
        case tree.Literal():
            return expression.value
        case tree.Name():
            return names.get(expression.name, expression.name)
        case tree.Arithmetic() | tree.Comparison():
            code = OPERATORS[expression.operator]
            return code(evaluated(expression.left, names), evaluated(expression.right, names))
        case tree.NewArray():
            return [evaluated(each, names) for each in expression.items]
        case tree.NewMap():
            return {evaluated(key, names): evaluated(value, names) for key, value in expression.entries}
        case tree.NewStruct():
            return {name: evaluated(value, names) for name, value in expression.fields}
        case tree.Lambda():
            body, parameters = expression.body, expression.parameters
            return lambda *given: evaluated(body, {**names, **dict(zip(parameters, given, strict=True))})
        case tree.Call():
            found = code_of(expression.function)
            assert found is not None, f"{expression.function} has no code"
            return found(*(evaluated(each, names) for each in expression.arguments))
    raise AssertionError(expression)


def expected(text: str) -> Any:
    """A result of the table: texts in single quotes, [a, b], {'a': 1}, {A: 1}, words and numbers."""
    if text in WORDS:
        return WORDS[text]
    if text.startswith("bytes "):
        return bytes.fromhex(text.removeprefix("bytes "))
    if text.startswith("rows "):
        return [expected(each) for each in text.removeprefix("rows ").split("; ")]
    pattern = r"'(?:[^']|'')*'|\[|\]|\{|\}|:|,|[^\s\[\]{}:,']+"
    python = []
    tokens = re.findall(pattern, text)
    for index, token in enumerate(tokens):
        if token in WORDS:
            python.append(repr(WORDS[token]))
        elif token[0].isalpha() and tokens[index + 1 : index + 2] == [":"]:
            python.append(repr(token))
        else:
            python.append(token)
    return eval("".join(python), {"__builtins__": {}})


EXAMPLES = [
    (call, result)
    for row in table().values()
    if row.kind != "aggregate" and row.name in CODES and row.name != "AS_VALUE"
    for call, result in row.examples
]


@pytest.mark.parametrize(("call", "result"), EXAMPLES)
def test_an_example_of_the_table_holds(call: str, result: str) -> None:
    found = evaluated(parse_expression(call), {})
    wanted = None if isinstance(found, dt.date | dt.time) else expected(result)
    if isinstance(found, Decimal):
        assert str(found) == result
    elif isinstance(found, dt.datetime):
        assert found.isoformat(timespec="milliseconds") == result
    elif isinstance(found, dt.date | dt.time):
        assert found.isoformat().removesuffix(":00" if found.isoformat().count(":") == 2 else "") == result
    elif isinstance(wanted, float) and math.isnan(wanted):
        assert math.isnan(found)
    elif isinstance(wanted, float) and math.isfinite(wanted):
        assert found == pytest.approx(wanted, rel=1e-15) and type(found) is float
    else:
        assert found == wanted and type(found) is type(wanted)


def test_every_function_has_code_or_is_listed_as_missing() -> None:
    missing = {row.name for row in table().values() if row.name not in CODES and row.name not in AGGREGATES}
    assert missing == CONSTRUCTS
    assert len(table()) == 153


@pytest.mark.parametrize("row", [row for row in table().values() if row.is_strict], ids=lambda row: row.name)
def test_strict_functions_give_null_for_null(row: Any) -> None:
    code = CODES.get(row.name)
    if code is not None:
        assert code(None) is None


def test_rules_of_null_that_differ() -> None:
    assert CODES["INSTR"](None, "a") == 0
    assert CODES["FIELD"](None, "a") == 0
    assert CODES["ARRAY_CONTAINS"](None, 1) is False
    assert CODES["SLICE"]([1, 2, 3], None, 2) == [1, 2]
    assert CODES["REDUCE"](None, 3, None) == 3
    assert CODES["LPAD"]("a", 3, "") is None
    assert CODES["CONCAT_WS"](None, "a") is None
    assert CODES["TO_JSON_STRING"](None) == "null"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("GENERATE_SERIES", (1, 5, -1)),
        ("GENERATE_SERIES", (1, 5, 0)),
        ("GEO_DISTANCE", (91.0, 0.0, 0.0, 0.0)),
        ("MASK_LEFT", ("a", -1)),
        ("TO_BYTES", ("xyz", "hex")),
        ("INT_FROM_BYTES", (b"abc",)),
        ("ENCODE", ("a", "ascii", "ASCII")),
        ("EXTRACTJSONFIELD", ("{", "$.a")),
        ("URL_EXTRACT_HOST", ("http://a b",)),
        ("LPAD", ("a", 2**31 - 1, "b")),
    ],
)
def test_what_has_no_value_is_an_evaluation_error(name: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(EvaluationError):
        CODES[name](*arguments)


def test_an_unknown_function_names_the_nearest_one() -> None:
    with pytest.raises(SqlError, match=r"the function SUBSTRIN does not exist\. Did you mean SUBSTRING\?"):
        code_of("SUBSTRIN")


def test_rounding_goes_towards_positive_infinity() -> None:
    assert [CODES["ROUND"](value) for value in (2.5, -2.5, 1.4, -1.6)] == [3, -2, 1, -2]
    assert str(CODES["ROUND"](Decimal("-12.345"), 2)) == "-12.340"
    assert CODES["SUBSTRING"]("stream", 0, 2) == "st"
    assert CODES["INSTR"]("banana", "an", -1, 2) == 2


AGGREGATED: list[tuple[str, list[Any], list[Any], list[Any], Any]] = [
    ("AVG", [kinds.INTEGER], [None], [1, 2, None], 1.5),
    ("COUNT", [], [], [1, 2, None], 3),
    ("COUNT", [kinds.INTEGER], [None], [1, 2, None], 2),
    ("SUM", [kinds.INTEGER], [None], [1, None, 4], 5),
    ("SUM", [kinds.INTEGER], [None], [2**31 - 1, 1], -(2**31)),
    ("MIN", [kinds.INTEGER], [None], [3, None, 9], 3),
    ("MAX", [kinds.INTEGER], [None], [3, None, 9], 9),
    ("COLLECT_LIST", [kinds.INTEGER], [None], [3, None, 3], [3, None, 3]),
    ("COLLECT_SET", [kinds.INTEGER], [None], [3, 1, 3], [3, 1]),
    ("COUNT_DISTINCT", [kinds.INTEGER], [None], [1, 1, 2], 2),
    ("HISTOGRAM", [kinds.STRING], [None], ["a", "b", "a"], {"a": 2, "b": 1}),
    ("LATEST_BY_OFFSET", [kinds.INTEGER], [None], [4, 5, None], 5),
    ("LATEST_BY_OFFSET", [kinds.INTEGER, kinds.INTEGER], [None, 2], [4, 5, 6], [5, 6]),
    ("EARLIEST_BY_OFFSET", [kinds.INTEGER], [None], [None, 4, 5], 4),
    ("EARLIEST_BY_OFFSET", [kinds.INTEGER, kinds.BOOLEAN], [None, False], [None, 4], None),
    ("TOPK", [kinds.INTEGER, kinds.INTEGER], [None, 2], [5, 9, 7], [9, 7]),
    ("TOPKDISTINCT", [kinds.INTEGER, kinds.INTEGER], [None, 2], [9, 9, 7], [9, 7]),
    ("STDDEV_SAMP", [kinds.INTEGER], [None], [1, 3], 2.0),
    ("STDDEV_SAMPLE", [kinds.INTEGER], [None], [1, 3], math.sqrt(2)),
    ("ATTR", [kinds.STRING], [None], ["a", "b"], None),
    ("SUM_LIST", [kinds.Array(kinds.INTEGER)], [None], [[1, 2], [3], None], 6),
]


@pytest.mark.parametrize(("name", "types", "literals", "rows", "wanted"), AGGREGATED)
def test_aggregates_add_undo_and_merge(
    name: str, types: list[Any], literals: list[Any], rows: list[Any], wanted: Any
) -> None:
    code = aggregate(name, types, literals)

    def over(some: list[Any], start: Any) -> Any:
        for row in some:
            if row is not None or code.takes_null:
                start = code.add(start, row)
        return start

    whole = over(rows, code.initial())
    assert code.result(whole) == wanted
    merged = code.merge(over(rows[:1], code.initial()), over(rows[1:], code.initial()))
    assert code.result(merged) == wanted
    if code.undo is not None and rows[-1] is not None:
        assert code.result(code.undo(whole, rows[-1])) == code.result(over(rows[:-1], code.initial()))


def test_every_aggregate_of_the_table_has_code() -> None:
    assert {row.name for row in table().values() if row.kind == "aggregate"} == set(AGGREGATES)
