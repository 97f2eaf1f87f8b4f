"""Prints expressions as texts that parse to the same trees.

Names are put in back quotes unless they are plain upper-case names. Parentheses stand around every operand
that is not a single word or call, so no rule of precedence is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.sql.syntax import tree
from barnabas.sql.syntax.words import keywords
from barnabas.sql.types import sql_types as kinds
from barnabas.sql.types.sql_types import PLAIN_NAME

CONSTRUCTORS = (tree.NewArray, tree.NewMap, tree.NewStruct)
SIMPLE = (tree.Name, tree.Call, tree.Case, tree.Cast, tree.Field, tree.Subscript, *CONSTRUCTORS)


def name_text(name: str) -> str:
    if PLAIN_NAME.fullmatch(name) and name not in keywords():
        return name
    return kinds.quoted(name)


def string_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def type_text(kind: kinds.SqlType) -> str:
    match kind:
        case kinds.Named():
            return name_text(kind.name)
        case kinds.Array():
            return f"ARRAY<{type_text(kind.item)}>"
        case kinds.Map():
            return f"MAP<{type_text(kind.key)}, {type_text(kind.value)}>"
        case kinds.Struct():
            return f"STRUCT<{', '.join(f'{name_text(n)} {type_text(k)}' for n, k in kind.fields)}>"
    return str(kind)


def literal_text(value: tree.Value, kind: kinds.SqlType) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return string_text(value)
        case float():
            text = repr(value)
            return text if "e" in text else text + "e0"
        case int():
            return str(value)
    text = format(value, "f")
    return text if "." in text else text + "."


def expression_text(expression: tree.Expression) -> str:
    for kind, text_of in TEXTS:
        if isinstance(expression, kind):
            return text_of(expression)
    raise TypeError(f"{type(expression).__name__} has no text")


def operand(expression: tree.Expression) -> str:
    text = expression_text(expression)
    if isinstance(expression, SIMPLE) or (isinstance(expression, tree.Literal) and text[0] != "-"):
        return text
    return f"({text})"


def comma(expressions: Any) -> str:
    return ", ".join(map(expression_text, expressions))


def qualified(source: str | None, text: str) -> str:
    return f"{name_text(source)}.{text}" if source is not None else text


def no(is_negated: bool) -> str:
    return "NOT " if is_negated else ""


def _like(e: tree.Like) -> str:
    escape = f" ESCAPE {string_text(e.escape)}" if e.escape is not None else ""
    return f"{operand(e.operand)} {no(e.is_negated)}LIKE {operand(e.pattern)}{escape}"


def _case(e: tree.Case) -> str:
    words = ["CASE", *([operand(e.operand)] if e.operand is not None else [])]
    words += [f"WHEN {expression_text(when)} THEN {expression_text(then)}" for when, then in e.whens]
    if e.otherwise is not None:
        words.append(f"ELSE {expression_text(e.otherwise)}")
    return " ".join([*words, "END"])


def _lambda(e: tree.Lambda) -> str:
    names = ", ".join(map(name_text, e.parameters))
    return f"({names}) => {expression_text(e.body)}"


def _binary(e: Any) -> str:
    return f"{operand(e.left)} {e.operator} {operand(e.right)}"


def _between(e: tree.Between) -> str:
    return f"{operand(e.operand)} {no(e.is_negated)}BETWEEN {operand(e.low)} AND {operand(e.high)}"


def _map(e: tree.NewMap) -> str:
    return f"MAP({', '.join(f'{expression_text(k)} := {expression_text(v)}' for k, v in e.entries)})"


def _struct(e: tree.NewStruct) -> str:
    return f"STRUCT({', '.join(f'{name_text(n)} := {expression_text(v)}' for n, v in e.fields)})"


TEXTS: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (tree.Literal, lambda e: literal_text(e.value, e.kind)),
    (tree.Name, lambda e: qualified(e.source, name_text(e.name))),
    (tree.Field, lambda e: f"{operand(e.base)}->{name_text(e.name)}"),
    (tree.Subscript, lambda e: f"{operand(e.base)}[{expression_text(e.index)}]"),
    (tree.Sign, lambda e: f"{e.operator}{operand(e.operand)}"),
    ((tree.Arithmetic, tree.Comparison, tree.Logical), _binary),
    (tree.Not, lambda e: f"NOT {operand(e.operand)}"),
    (tree.Between, _between),
    (tree.In, lambda e: f"{operand(e.operand)} {no(e.is_negated)}IN ({comma(e.items)})"),
    (tree.Like, _like),
    (tree.IsNull, lambda e: f"{operand(e.operand)} IS {no(e.is_negated)}NULL"),
    (tree.Case, _case),
    (tree.Cast, lambda e: f"CAST({expression_text(e.operand)} AS {type_text(e.kind)})"),
    (tree.NewArray, lambda e: f"ARRAY[{comma(e.items)}]"),
    (tree.NewMap, _map),
    (tree.NewStruct, _struct),
    (tree.Call, lambda e: f"{name_text(e.function)}({comma(e.arguments)})"),
    (tree.Lambda, _lambda),
    (tree.Star, lambda e: qualified(e.source, "*")),
    (tree.FieldsOf, lambda e: f"{operand(e.base)}->*"),
    (tree.AtTimeZone, lambda e: f"{operand(e.operand)} AT TIME ZONE {expression_text(e.zone)}"),
    (tree.Tuple, lambda e: f"({comma(e.items)})"),
)
