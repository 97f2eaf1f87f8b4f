"""The examples of the table of functions hold, and functions keep their rules of null."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

import pytest

from barnabas.sql.errors import EvaluationError, SqlError
from barnabas.sql.functions.builtin import CODES, code_of
from barnabas.sql.functions.registry import table
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.parsing import parse_expression

# Functions without code: the grammar has them as expressions of their own, or docs/gaps.md lists them.
CONSTRUCTS = {"ARRAY", "CAST", "MAP", "STRUCT"}
MISSING_CATEGORIES = {"date and time", "aggregate"}
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
            return names[expression.name]
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
    if "FROM_DAYS" not in call and "PARSE_" not in call
]


@pytest.mark.parametrize(("call", "result"), EXAMPLES)
def test_an_example_of_the_table_holds(call: str, result: str) -> None:
    found = evaluated(parse_expression(call), {})
    wanted = expected(result)
    if isinstance(found, Decimal):
        assert str(found) == result
    elif isinstance(wanted, float) and math.isnan(wanted):
        assert math.isnan(found)
    elif isinstance(wanted, float) and math.isfinite(wanted):
        assert found == pytest.approx(wanted, rel=1e-15) and type(found) is float
    else:
        assert found == wanted and type(found) is type(wanted)


def test_every_function_has_code_or_is_listed_as_missing() -> None:
    missing = {
        row.name
        for row in table().values()
        if row.name not in CODES and row.category not in MISSING_CATEGORIES
    }
    assert missing - CONSTRUCTS == {
        "REGEXP_EXTRACT",
        "REGEXP_EXTRACT_ALL",
        "REGEXP_REPLACE",
        "REGEXP_SPLIT_TO_ARRAY",
    }
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
