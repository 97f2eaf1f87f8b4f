"""The types of operators: arithmetic, signs and comparisons.

Does not know: texts of statements beyond what an error shows.
"""

from __future__ import annotations

from typing import Any

from barnabas.sql.errors import EvaluationError, SqlError
from barnabas.sql.expressions.casting import as_decimal, to_timestamp, wider
from barnabas.sql.expressions.nodes import SqlCall
from barnabas.sql.expressions.signatures import coerces
from barnabas.sql.expressions.typed import Typed, coerce, literal
from barnabas.sql.syntax.printing import expression_text
from barnabas.sql.types.sql_types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INTEGER,
    NULL,
    STRING,
    Array,
    Decimal,
    Map,
    SqlType,
    Struct,
    is_number,
    to_millis,
)

WORDS = {
    "+": "ADD",
    "-": "SUBTRACT",
    "*": "MULTIPLY",
    "/": "DIVIDE",
    "%": "MODULUS",
    "||": "CONCAT",
    "=": "EQUAL",
    "<>": "NOT_EQUAL",
    "<": "LESS_THAN",
    "<=": "LESS_THAN_OR_EQUAL",
    ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL",
}
DIVISION_SCALE_MIN = 6


def arithmetic(operator: str, left: Typed, right: Typed, at: Any) -> Typed:
    kind = result_kind(operator, left.kind, right.kind)
    if kind is None:
        raise SqlError(
            f"Unsupported arithmetic types. {left.kind} {right.kind}: "
            f"{WORDS[operator]} in {expression_text(at)}",
            at.at,
        )
    name = "||" if kind in (STRING, BYTES) else operator
    return Typed(SqlCall(name, (left.node, right.node), (left.kind, right.kind), kind), kind)


def result_kind(operator: str, one: SqlType, two: SqlType) -> SqlType | None:
    if operator == "||" or (operator == "+" and STRING in (one, two)):
        for kind in (STRING, BYTES):
            if {one, two} <= {kind, NULL}:
                return kind
        return None
    if one == NULL:
        one = two
    if two == NULL:
        two = one
    if not (is_number(one) and is_number(two)):
        return None
    if DOUBLE in (one, two):
        return DOUBLE
    if isinstance(one, Decimal) or isinstance(two, Decimal):
        return decimal_kind(operator, as_decimal(one), as_decimal(two))
    return BIGINT if BIGINT in (one, two) else INTEGER


def decimal_kind(operator: str, one: Decimal, two: Decimal) -> Decimal:
    p1, s1, p2, s2 = one.precision, one.scale, two.precision, two.scale
    if operator in "+-":
        scale = max(s1, s2)
        return Decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if operator == "*":
        return Decimal(p1 + p2 + 1, s1 + s2)
    if operator == "/":
        scale = max(DIVISION_SCALE_MIN, s1 + p2 + 1)
        return Decimal(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)
    return Decimal(min(p1 - s1, p2 - s2) + scale, scale)


def sign(operator: str, operand: Typed, at: Any) -> Typed:
    if not is_number(operand.kind):
        raise SqlError(f"{expression_text(at)}: {operand.kind} has no sign", at.at)
    if operator == "+":
        return operand
    if operand.is_literal:
        kind = INTEGER if operand.value == 2**31 and operand.kind == BIGINT else operand.kind
        return literal(-operand.value, kind)
    return Typed(SqlCall("NEGATE", (operand.node,), (operand.kind,), operand.kind), operand.kind)


def comparison(operator: str, left: Typed, right: Typed, at: Any) -> Typed:
    left, right = comparable(operator, left, right, at)
    kinds = (left.kind, right.kind)
    return Typed(SqlCall(operator, (left.node, right.node), kinds, BOOLEAN), BOOLEAN)


def comparable(operator: str, left: Typed, right: Typed, at: Any) -> tuple[Typed, Typed]:
    """Convert both sides to values that can be compared. SqlError where they cannot."""
    if left.is_time and right.is_literal and right.kind == STRING:
        return left, instant(right)
    if right.is_time and left.is_literal and left.kind == STRING:
        return instant(left), right
    one, two = left.kind, right.kind
    if NULL in (one, two):
        return left, right
    is_equality = operator in ("=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
    if one == two:
        if is_equality or not (isinstance(one, Array | Map | Struct) or one == BOOLEAN):
            return left, right
    elif (is_number(one) and is_number(two)) or (wider(one, two) is not None and is_equality):
        return left, right
    elif right.is_literal and coerces(two, one):
        return left, coerce(right, one, expression_text(at))
    elif left.is_literal and coerces(one, two):
        return coerce(left, two, expression_text(at)), right
    word = WORDS.get(operator, operator)
    raise SqlError(
        f"Cannot compare {shown(at, 'left', one)} to {shown(at, 'right', two)} with {word}.", at.at
    )


def shown(at: Any, side: str, kind: SqlType) -> str:
    part = getattr(at, side, None)
    return f"{expression_text(part)} ({kind})" if part is not None else str(kind)


def instant(text: Typed) -> Typed:
    """A text that is compared with ROWTIME or a window's bound: milliseconds."""
    try:
        return literal(to_millis(to_timestamp(text.value)), BIGINT)
    except EvaluationError as error:
        raise SqlError(f"Failed to parse timestamp '{text.value}': {error}") from None
