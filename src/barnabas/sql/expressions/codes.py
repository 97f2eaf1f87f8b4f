"""Operators and casts as Python functions, found by name and types; functions come from `sql/functions`.

INTEGER and BIGINT wrap, whole division cuts, decimals round half up, a comparison with null is false. Does
not know: trees.
"""

from __future__ import annotations

import decimal
import functools
import math
import operator
import re
from collections.abc import Callable
from typing import Any

from barnabas.sql.errors import EvaluationError
from barnabas.sql.expressions.casting import fit, total
from barnabas.sql.functions.builtin import code_of
from barnabas.sql.types.sql_types import (
    BIGINT,
    DOUBLE,
    EXACT,
    INTEGER,
    Array,
    Decimal,
    SqlType,
    wrapped_int,
    wrapped_long,
)

Code = Callable[..., Any]
LIKE_PATTERNS_MAX = 256


def code_for(name: str, kinds: tuple[SqlType, ...], kind: SqlType) -> Code:
    if name in ARITHMETIC:
        return arithmetic(name, kinds, kind)
    if name == "NEGATE":
        return negation(kind)
    if name in COMPARISONS:
        return comparison(COMPARISONS[name])
    if name == "CAST":
        return total(kinds[0], kind)
    if name in OTHERS:
        return OTHERS[name]
    if name == "[]":
        return array_item if isinstance(kinds[0], Array) else map_item
    code = code_of(name)
    if code is None:
        raise EvaluationError(f"the function {name} has no code")
    return code


# -------------------------------------------------------------------------------------------- arithmetic


def quotient(a: int, b: int) -> int:
    if b == 0:
        raise EvaluationError("/ by zero")
    found = abs(a) // abs(b)
    return found if (a < 0) == (b < 0) else -found


def remainder(a: int, b: int) -> int:
    if b == 0:
        raise EvaluationError("/ by zero")
    found = abs(a) % abs(b)
    return -found if a < 0 else found


def double_quotient(a: float, b: float) -> float:
    if b == 0:
        if a == 0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def double_remainder(a: float, b: float) -> float:
    return math.nan if b == 0 or math.isinf(a) else math.fmod(a, b)


def decimal_quotient(a: decimal.Decimal, b: decimal.Decimal) -> decimal.Decimal:
    if b == 0:
        raise EvaluationError("/ by zero")
    return EXACT.divide(a, b)


def decimal_remainder(a: decimal.Decimal, b: decimal.Decimal) -> decimal.Decimal:
    if b == 0:
        raise EvaluationError("Division by zero")
    return EXACT.remainder(a, b)


ARITHMETIC = {"+", "-", "*", "/", "%", "||"}
OF_WHOLE: dict[str, Code] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": quotient,
    "%": remainder,
}
OF_DOUBLE: dict[str, Code] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": double_quotient,
    "%": double_remainder,
}
OF_DECIMAL: dict[str, Code] = {
    "+": EXACT.add,
    "-": EXACT.subtract,
    "*": EXACT.multiply,
    "/": decimal_quotient,
    "%": decimal_remainder,
}


def arithmetic(name: str, kinds: tuple[SqlType, ...], kind: SqlType) -> Code:
    if kind in (INTEGER, BIGINT):
        compute, wrap = OF_WHOLE[name], wrapped_int if kind == INTEGER else wrapped_long
        return lambda a, b: None if a is None or b is None else wrap(compute(a, b))
    if kind == DOUBLE:
        compute = OF_DOUBLE[name]
        return lambda a, b: None if a is None or b is None else compute(float(a), float(b))
    if isinstance(kind, Decimal):
        compute, fitted, number = OF_DECIMAL[name], fit(kind), decimal.Decimal
        return lambda a, b: None if a is None or b is None else fitted(compute(number(a), number(b)))
    return lambda a, b: None if a is None or b is None else a + b


def negation(kind: SqlType) -> Code:
    wrap: Code = wrapped_int if kind == INTEGER else wrapped_long if kind == BIGINT else lambda value: value
    return lambda value: None if value is None else wrap(-value)


# ------------------------------------------------------------------------------------------- comparisons


COMPARISONS: dict[str, Code] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def comparison(compare: Code) -> Code:
    return lambda a, b: a is not None and b is not None and compare(a, b)


@functools.lru_cache(LIKE_PATTERNS_MAX)
def like_pattern(pattern: str, escape: str | None) -> re.Pattern[str]:
    parts, signs = [], iter(pattern)
    for sign in signs:
        if sign == escape:
            parts.append(re.escape(next(signs, sign)))
        else:
            parts.append(".*" if sign == "%" else "." if sign == "_" else re.escape(sign))
    return re.compile("".join(parts), re.DOTALL)


def like(text: str | None, pattern: str | None, escape: str | None = None) -> bool:
    if text is None or pattern is None:
        return False
    return like_pattern(pattern, escape).fullmatch(text) is not None


def is_in(value: Any, *options: Any) -> bool:
    return value is not None and any(each == value for each in options if each is not None)


def is_distinct(a: Any, b: Any) -> bool:
    return bool(a != b)


def array_item(items: list[Any] | None, index: int | None) -> Any:
    """From 1; negative numbers count from the end."""
    if items is None or index is None or index == 0:
        return None
    at = index - 1 if index > 0 else index
    return items[at] if -len(items) <= at < len(items) else None


def map_item(entries: dict[Any, Any] | None, key: Any) -> Any:
    return None if entries is None else entries.get(key)


def field(row: dict[str, Any] | None, name: str) -> Any:
    return None if row is None else row.get(name)


OTHERS: dict[str, Code] = {
    "LIKE": like,
    "IN": is_in,
    "IS DISTINCT FROM": is_distinct,
    "IS NOT DISTINCT FROM": lambda a, b: not is_distinct(a, b),
}
