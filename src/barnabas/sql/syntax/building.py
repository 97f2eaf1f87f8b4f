"""Builds the trees of expressions and types from lark's parse trees."""

from __future__ import annotations

import decimal
from typing import Any

from lark import Token, Transformer, v_args

from barnabas.sql.errors import Position, SyntaxProblem
from barnabas.sql.syntax import tree
from barnabas.sql.types import sql_types as kinds


def position(meta: Any) -> Position | None:
    return Position(meta.line, meta.column) if not meta.empty else None


def unquoted(text: str) -> str:
    """The content of a text in quotes, where two quotes stand for one."""
    mark = text[0]
    return text[1:-1].replace(mark * 2, mark)


def _binary(make: Any, operator: str) -> Any:
    def build(self: Any, meta: Any, children: list[Any]) -> Any:
        return make(operator, children[0], children[-1], at=position(meta))

    return v_args(meta=True)(build)


def _negatable(make: Any, is_negated: bool) -> Any:
    def build(self: Any, meta: Any, children: list[Any]) -> Any:
        return make(*children, is_negated=is_negated, at=position(meta))

    return v_args(meta=True)(build)


@v_args(meta=True)
class ExpressionBuilder(Transformer[Token, Any]):
    """Rules of expressions and types. Their names are those of the grammar."""

    def plain_name(self, meta: Any, children: list[Any]) -> str:
        return str(children[0]).upper()

    def quoted_name(self, meta: Any, children: list[Any]) -> str:
        return unquoted(children[0])

    def word(self, meta: Any, children: list[Any]) -> str:
        return str(children[0])

    bare_word = word
    type_word = word

    def function_name(self, meta: Any, children: list[Any]) -> str:
        return str(children[0]).upper()

    def column_name(self, meta: Any, children: list[Any]) -> tree.Name:
        if len(children) == 2:
            return tree.Name(children[1], children[0], at=position(meta))
        return tree.Name(children[0], at=position(meta))

    def string(self, meta: Any, children: list[Any]) -> tree.Literal:
        return tree.Literal(unquoted(children[0]), kinds.STRING, at=position(meta))

    def integer(self, meta: Any, children: list[Any]) -> tree.Literal:
        value = int(children[0])
        if value > kinds.LONG_MAX + 1:  # the smallest BIGINT is written as minus this
            raise SyntaxProblem(f"{value} is too large for a BIGINT: write it as a DECIMAL", position(meta))
        kind = kinds.INTEGER if value <= kinds.INT_MAX else kinds.BIGINT
        return tree.Literal(value, kind, at=position(meta))

    def decimal(self, meta: Any, children: list[Any]) -> tree.Literal:
        value = decimal.Decimal(children[0])
        _, digits, exponent = value.as_tuple()
        scale = -int(exponent)
        kind = kinds.Decimal(max(len(digits), scale, 1), scale)
        return tree.Literal(value, kind, at=position(meta))

    def double(self, meta: Any, children: list[Any]) -> tree.Literal:
        return tree.Literal(float(children[0]), kinds.DOUBLE, at=position(meta))

    def true(self, meta: Any, children: list[Any]) -> tree.Literal:
        return tree.Literal(True, kinds.BOOLEAN, at=position(meta))

    def false(self, meta: Any, children: list[Any]) -> tree.Literal:
        return tree.Literal(False, kinds.BOOLEAN, at=position(meta))

    def null(self, meta: Any, children: list[Any]) -> tree.Literal:
        return tree.Literal(None, kinds.NULL, at=position(meta))

    add = _binary(tree.Arithmetic, "+")
    subtract = _binary(tree.Arithmetic, "-")
    multiply = _binary(tree.Arithmetic, "*")
    divide = _binary(tree.Arithmetic, "/")
    modulo = _binary(tree.Arithmetic, "%")
    concatenation = _binary(tree.Arithmetic, "||")
    equals = _binary(tree.Comparison, "=")
    unequal = _binary(tree.Comparison, "<>")
    less = _binary(tree.Comparison, "<")
    greater = _binary(tree.Comparison, ">")
    distinct = _binary(tree.Comparison, "IS DISTINCT FROM")
    not_distinct = _binary(tree.Comparison, "IS NOT DISTINCT FROM")
    logical_or = _binary(tree.Logical, "OR")
    logical_and = _binary(tree.Logical, "AND")
    between = _negatable(tree.Between, False)
    not_between = _negatable(tree.Between, True)
    is_null = _negatable(tree.IsNull, False)
    is_not_null = _negatable(tree.IsNull, True)
    within_list = _negatable(tree.In, False)
    not_within_list = _negatable(tree.In, True)
    like = _negatable(tree.Like, False)
    not_like = _negatable(tree.Like, True)

    def comparison(self, meta: Any, children: list[Any]) -> tree.Comparison:
        left, operator, right = children
        return tree.Comparison("<>" if operator == "!=" else str(operator), left, right, at=position(meta))

    def escape(self, meta: Any, children: list[Any]) -> str:
        found = unquoted(children[0])
        if len(found) != 1:
            raise SyntaxProblem(f"ESCAPE is {found!r}: one character is needed", position(meta))
        return found

    def logical_not(self, meta: Any, children: list[Any]) -> tree.Not:
        return tree.Not(children[0], at=position(meta))

    def negative(self, meta: Any, children: list[Any]) -> tree.Expression:
        operand = children[0]
        if isinstance(operand, tree.Literal) and kinds.is_number(operand.kind):
            value = -operand.value  # type: ignore[operator]
            kind = kinds.INTEGER if value == kinds.INT_MIN else operand.kind
            return tree.Literal(value, kind, at=position(meta))
        return tree.Sign("-", operand, at=position(meta))

    def positive(self, meta: Any, children: list[Any]) -> tree.Expression:
        return tree.Sign("+", children[0], at=position(meta))

    def field(self, meta: Any, children: list[Any]) -> tree.Field:
        return tree.Field(children[0], children[1], at=position(meta))

    def subscript(self, meta: Any, children: list[Any]) -> tree.Subscript:
        return tree.Subscript(children[0], children[1], at=position(meta))

    def at_time_zone(self, meta: Any, children: list[Any]) -> tree.AtTimeZone:
        zone = tree.Literal(unquoted(children[1]), kinds.STRING)
        return tree.AtTimeZone(children[0], zone, at=position(meta))

    def parentheses(self, meta: Any, children: list[Any]) -> tree.Expression:
        return children[0] if len(children) == 1 else tree.Tuple(tuple(children), at=position(meta))

    def arguments(self, meta: Any, children: list[Any]) -> tuple[Any, ...]:
        return tuple(children)

    def call_nothing(self, meta: Any, children: list[Any]) -> tree.Call:
        return tree.Call(children[0], at=position(meta))

    def call_star(self, meta: Any, children: list[Any]) -> tree.Call:
        return tree.Call(children[0], (tree.Star(),), at=position(meta))

    def call_with(self, meta: Any, children: list[Any]) -> tree.Call:
        return tree.Call(children[0], children[1], at=position(meta))

    def new_lambda(self, meta: Any, children: list[Any]) -> tree.Lambda:
        given, body = children
        names: list[str] = []
        for each in given.items if isinstance(given, tree.Tuple) else (given,):
            if not isinstance(each, tree.Name) or each.source is not None:
                raise SyntaxProblem("parameters of a lambda are plain names: (x, y) => x + y", each.at)
            names.append(each.name)
        return tree.Lambda(tuple(names), body, at=position(meta))

    def when(self, meta: Any, children: list[Any]) -> tuple[str, Any, Any]:
        return "when", children[0], children[1]

    def otherwise(self, meta: Any, children: list[Any]) -> tuple[str, Any]:
        return "else", children[0]

    def case(self, meta: Any, children: list[Any]) -> tree.Case:
        operand = children.pop(0) if isinstance(children[0], tree.Expression) else None
        last = children[-1]
        otherwise = children.pop()[1] if last[0] == "else" else None
        return tree.Case(
            operand, tuple((each[1], each[2]) for each in children), otherwise, at=position(meta)
        )

    def cast(self, meta: Any, children: list[Any]) -> tree.Cast:
        return tree.Cast(children[0], children[1], at=position(meta))

    def new_array(self, meta: Any, children: list[Any]) -> tree.NewArray:
        return tree.NewArray(tuple(children), at=position(meta))

    def entry(self, meta: Any, children: list[Any]) -> tuple[Any, Any]:
        return children[0], children[1]

    struct_entry = entry
    struct_field = entry

    def new_map(self, meta: Any, children: list[Any]) -> tree.NewMap:
        return tree.NewMap(tuple(children), at=position(meta))

    def new_struct(self, meta: Any, children: list[Any]) -> tree.NewStruct:
        return tree.NewStruct(tuple(children), at=position(meta))

    def array_of(self, meta: Any, children: list[Any]) -> kinds.SqlType:
        return kinds.Array(children[0])

    def map_of(self, meta: Any, children: list[Any]) -> kinds.SqlType:
        return kinds.Map(children[0], children[1])

    def struct_of(self, meta: Any, children: list[Any]) -> kinds.SqlType:
        return kinds.Struct(tuple(children))

    def type_name(self, meta: Any, children: list[Any]) -> str:
        text = str(children[0])
        return unquoted(text) if text[0] in '`"' else text.upper()

    def plain_type(self, meta: Any, children: list[Any]) -> kinds.SqlType:
        name = children[0]
        if name == "DECIMAL":
            raise SyntaxProblem("DECIMAL needs its precision and scale: DECIMAL(10, 2)", position(meta))
        return kinds.PRIMITIVES.get(name) or kinds.Named(name)

    def sized_type(self, meta: Any, children: list[Any]) -> kinds.SqlType:
        name, *sizes = children
        if name in ("VARCHAR", "STRING") and len(sizes) == 1:
            return kinds.STRING
        if name != "DECIMAL" or len(sizes) != 2:
            raise SyntaxProblem(f"{name} takes no size here: DECIMAL(10, 2) does", position(meta))
        precision, scale = map(int, sizes)
        if not (0 < precision <= kinds.DECIMAL_PRECISION_MAX and 0 <= scale <= precision):
            raise SyntaxProblem(
                f"DECIMAL({precision}, {scale}): the precision is at least 1, and the scale not above it",
                position(meta),
            )
        return kinds.Decimal(precision, scale)
