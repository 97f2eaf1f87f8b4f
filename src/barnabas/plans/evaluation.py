"""Expressions evaluated in Python: a tree becomes one function of a record.

In: an expression. Out: `function(scope)`, where a scope is (key, value, timestamp, right value, context).
SQL's rules of null: an operator with null gives null, `and` and `or` have three values. Structs are dicts.
Does not know: tables, windows, Spark.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from barnabas.plans import expressions as e
from barnabas.plans.casting import cast_to
from barnabas.plans.functions import function_named
from barnabas.plans.windows import Windowed

Scope = tuple[Any, Any, int, Any, Any]
Evaluate = Callable[[Any], Any]
KEY, VALUE, TIMESTAMP, RIGHT, CONTEXT = range(5)
VARIABLES = 5  # a scope inside of a lambda has one more item: a dict of variables


def compile_expression(expression: e.Expression) -> Evaluate:
    """The function that evaluates an expression for a scope."""
    return _COMPILERS[type(expression)](expression)


def compiles(kind: type[e.Expression]) -> Callable[[Callable[[Any], Evaluate]], Callable[[Any], Evaluate]]:
    """Mark the function that compiles expressions of a kind that another part brings along."""

    def register(compile_it: Callable[[Any], Evaluate]) -> Callable[[Any], Evaluate]:
        _COMPILERS[kind] = compile_it
        return compile_it

    return register


def field_of(row: Any, name: str) -> Any:
    """A field of a dict, a dataclass or a model; null where there is none."""
    if row is None:
        return None
    if isinstance(row, dict):
        return row.get(name)
    return getattr(row, name, None)


_SIDES = {"key": KEY, "value": VALUE, "left": VALUE, "right": RIGHT}


def _column(node: e.Column) -> Evaluate:
    side, name = _SIDES[node.side], node.name

    def evaluate(scope: Any) -> Any:
        row = scope[side]
        if type(row) is dict:
            return row.get(name)
        return field_of(row.key if side == KEY and type(row) is Windowed else row, name)

    return evaluate


def _whole(node: e.Whole) -> Evaluate:
    side = _SIDES[node.side]
    return lambda scope: scope[side]


def _meta(node: e.Meta) -> Evaluate:
    name = node.name
    if name == "timestamp":
        return lambda scope: scope[TIMESTAMP]
    if name == "window_start":
        return lambda scope: scope[KEY].start if type(scope[KEY]) is Windowed else None
    if name == "window_end":
        return lambda scope: scope[KEY].end if type(scope[KEY]) is Windowed else None
    return lambda scope: getattr(scope[CONTEXT], name)


def _literal(node: e.Literal_) -> Evaluate:
    constant = node.value
    return lambda scope: constant


def _divide(a: Any, b: Any) -> Any:
    return a / b


def _divide_as_java(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    return a / b


def _modulo(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        rest = abs(a) % abs(b)
        return -rest if a < 0 else rest
    return math.fmod(a, b)


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "div": _divide_as_java,
    "%": _modulo,
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _binary(node: e.Binary) -> Evaluate:
    left, right = compile_expression(node.left), compile_expression(node.right)
    if node.operator == "and":

        def both(scope: Any) -> Any:
            a = left(scope)
            if a is False:
                return False
            b = right(scope)
            return False if b is False else (None if a is None or b is None else a and b)

        return both
    if node.operator == "or":

        def either(scope: Any) -> Any:
            a = left(scope)
            if a is True:
                return True
            b = right(scope)
            return True if b is True else (None if a is None or b is None else a or b)

        return either
    if node.operator == "is distinct from":
        return lambda scope: left(scope) != right(scope)
    try:
        compute = _BINARY[node.operator]
    except KeyError:
        raise ValueError(
            f"unknown operator {node.operator!r}; known: {', '.join(_BINARY)}, and, or"
        ) from None

    def evaluate(scope: Any) -> Any:
        a = left(scope)
        b = right(scope)
        return None if a is None or b is None else compute(a, b)

    return evaluate


def _unary(node: e.Unary) -> Evaluate:
    operand = compile_expression(node.operand)
    if node.operator == "is null":
        return lambda scope: operand(scope) is None
    if node.operator == "is not null":
        return lambda scope: operand(scope) is not None

    def evaluate(scope: Any) -> Any:
        value = operand(scope)
        return None if value is None else (not value if node.operator == "not" else -value)

    return evaluate


def _in(node: e.In) -> Evaluate:
    operand, options = compile_expression(node.operand), [compile_expression(o) for o in node.options]

    def evaluate(scope: Any) -> Any:
        value = operand(scope)
        if value is None:
            return None
        found = [option(scope) for option in options]
        return True if value in found else (None if None in found else False)

    return evaluate


def _call(node: e.Call) -> Evaluate:
    function = function_named(node.name)
    arguments = [compile_expression(argument) for argument in node.arguments]
    compute, takes_null = function.compute, function.takes_null

    def evaluate(scope: Any) -> Any:
        values = [argument(scope) for argument in arguments]
        if not takes_null and None in values:
            return None
        return compute(*values)

    return evaluate


def _case(node: e.Case) -> Evaluate:
    whens = [(compile_expression(when), compile_expression(then)) for when, then in node.whens]
    default = compile_expression(node.default) if node.default is not None else lambda scope: None

    def evaluate(scope: Any) -> Any:
        for when, then in whens:
            if when(scope) is True:
                return then(scope)
        return default(scope)

    return evaluate


def _cast(node: e.Cast) -> Evaluate:
    operand, convert = compile_expression(node.operand), cast_to(node.type_name)

    def evaluate(scope: Any) -> Any:
        value = operand(scope)
        return None if value is None else convert(value)

    return evaluate


def _field(node: e.Field) -> Evaluate:
    operand, name = compile_expression(node.operand), node.name
    return lambda scope: field_of(operand(scope), name)


def _item(node: e.Item) -> Evaluate:
    operand, index = compile_expression(node.operand), compile_expression(node.index)

    def evaluate(scope: Any) -> Any:
        holder, at = operand(scope), index(scope)
        if holder is None or at is None:
            return None
        if isinstance(holder, dict):
            return holder.get(at)
        return holder[at] if -len(holder) <= at < len(holder) else None

    return evaluate


def _struct(node: e.Struct) -> Evaluate:
    fields = [(name, compile_expression(each)) for name, each in node.fields]
    return lambda scope: {name: each(scope) for name, each in fields}


def _array(node: e.ArrayOf) -> Evaluate:
    items = [compile_expression(item) for item in node.items]
    return lambda scope: [item(scope) for item in items]


def _map(node: e.MapOf) -> Evaluate:
    entries = [(compile_expression(k), compile_expression(v)) for k, v in node.entries]
    return lambda scope: {k(scope): v(scope) for k, v in entries}


def _variable(node: e.Variable) -> Evaluate:
    name = node.name
    return lambda scope: scope[VARIABLES][name]


def _lambda(node: e.Lambda) -> Evaluate:
    body, parameters = compile_expression(node.body), node.parameters

    def evaluate(scope: Any) -> Any:
        outer = scope[VARIABLES] if len(scope) > VARIABLES else {}

        def function(*arguments: Any) -> Any:
            variables = {**outer, **dict(zip(parameters, arguments, strict=True))}
            return body((*scope[:VARIABLES], variables))

        return function

    return evaluate


_COMPILERS: dict[type[e.Expression], Callable[[Any], Evaluate]] = {
    e.Column: _column,
    e.Whole: _whole,
    e.Meta: _meta,
    e.Literal_: _literal,
    e.Binary: _binary,
    e.Unary: _unary,
    e.In: _in,
    e.Call: _call,
    e.Case: _case,
    e.Cast: _cast,
    e.Field: _field,
    e.Item: _item,
    e.Struct: _struct,
    e.ArrayOf: _array,
    e.MapOf: _map,
    e.Variable: _variable,
    e.Lambda: _lambda,
}
