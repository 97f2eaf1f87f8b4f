"""An expression with its type, and how one becomes another type by itself.

Does not know: texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.plans import expressions as e
from barnabas.sql.errors import EvaluationError, SqlError
from barnabas.sql.expressions.casting import cast, text_of, widens, wider
from barnabas.sql.expressions.nodes import SqlCall
from barnabas.sql.expressions.signatures import coerces
from barnabas.sql.types.sql_types import BOOLEAN, NULL, STRING, SqlType

TRUTHS = {True: ("true", "yes"), False: ("false", "no")}


@dataclass(frozen=True, slots=True, eq=False)
class Typed:
    """`is_literal`: a constant, `value` is it. `is_time`: ROWTIME or a bound of a window, which texts may be
    compared with."""

    node: e.Expression
    kind: SqlType
    is_literal: bool = False
    value: Any = None
    is_time: bool = False


def literal(value: Any, kind: SqlType) -> Typed:
    return Typed(e.Literal_(value), kind, True, value)


def coerce(given: Typed, wanted: SqlType, what: str) -> Typed:
    """The expression as another type, where that needs no CAST."""
    if given.kind == wanted:
        return given
    if given.kind == NULL:
        return Typed(given.node, wanted, given.is_literal)
    if given.is_literal:
        found = of_literal(given, wanted)
        if found is not None:
            return found
    if widens(given.kind, wanted):
        return Typed(SqlCall("CAST", (given.node,), (given.kind,), wanted), wanted)
    raise SqlError(f"{what}: {given.kind} cannot be used as {wanted}. Use CAST where it is meant.")


def of_literal(given: Typed, wanted: SqlType) -> Typed | None:
    """A constant as another type; None where it stays what it is."""
    if not (widens(given.kind, wanted) or coerces(given.kind, wanted)):
        return None
    if wanted == STRING:
        return literal(text_of(given.value, given.kind), STRING)
    if wanted == BOOLEAN:
        return literal(truth(given.value), BOOLEAN)
    try:
        convert = cast(given.kind, wanted)
        return literal(given.value if convert is None else convert(given.value), wanted)
    except EvaluationError as error:
        raise SqlError(str(error)) from None


def truth(text: str) -> bool:
    given = text.strip().lower()
    for value, words in TRUTHS.items():
        if given and any(word.startswith(given) for word in words):
            return value
    raise SqlError(f"{text!r} is neither true nor false")


def common(given: Sequence[Typed], what: str) -> tuple[SqlType, list[e.Expression]]:
    """The type that all have or turn into, and the expressions of that type."""
    kind: SqlType = NULL
    for each in given:
        if kind == NULL:
            kind = each.kind
        elif each.kind != NULL:
            widest = wider(kind, each.kind)
            if widest is not None:
                kind = widest
            elif not (each.is_literal and coerces(each.kind, kind)):
                raise SqlError(
                    f"{what}: operator expects all elements to be of the same type: {kind} and {each.kind}"
                )
    return kind, [coerce(each, kind, what).node if kind != NULL else each.node for each in given]
