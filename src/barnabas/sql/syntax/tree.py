"""Expressions as trees. `at` is where the text has them; it takes no part in comparisons."""

from __future__ import annotations

import decimal
from dataclasses import dataclass, field

from barnabas.sql.errors import Position
from barnabas.sql.types.sql_types import SqlType

Value = None | bool | int | float | decimal.Decimal | str


@dataclass(frozen=True, slots=True)
class Expression:
    at: Position | None = field(default=None, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """`kind` is NULL, BOOLEAN, INTEGER, BIGINT, DECIMAL, DOUBLE or STRING."""

    value: Value
    kind: SqlType


@dataclass(frozen=True, slots=True)
class Name(Expression):
    """A column, with the source that it is of where the text says so."""

    name: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Field(Expression):
    """`base->name`"""

    base: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Subscript(Expression):
    base: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Sign(Expression):
    """`-operand` or `+operand`"""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    """`+ - * / %` and `||`"""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    """`= <> < <= > >=`, `IS DISTINCT FROM` and `IS NOT DISTINCT FROM`"""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Logical(Expression):
    """AND or OR"""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Not(Expression):
    operand: Expression


@dataclass(frozen=True, slots=True)
class Between(Expression):
    operand: Expression
    low: Expression
    high: Expression
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class In(Expression):
    operand: Expression
    items: tuple[Expression, ...]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(Expression):
    operand: Expression
    pattern: Expression
    escape: str | None = None
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    operand: Expression
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """`operand` is None in the searched form, where each `when` is a condition."""

    operand: Expression | None
    whens: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None = None


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    operand: Expression
    kind: SqlType


@dataclass(frozen=True, slots=True)
class NewArray(Expression):
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class NewMap(Expression):
    entries: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True, slots=True)
class NewStruct(Expression):
    fields: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A function by its name in upper case. `COUNT(*)` has the argument `Star()`."""

    function: str
    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Lambda(Expression):
    parameters: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class Star(Expression):
    """`*` or `source.*` in a SELECT, `*` in COUNT."""

    source: str | None = None


@dataclass(frozen=True, slots=True)
class FieldsOf(Expression):
    """`base->*` in a SELECT"""

    base: Expression


@dataclass(frozen=True, slots=True)
class AtTimeZone(Expression):
    operand: Expression
    zone: Expression


@dataclass(frozen=True, slots=True)
class Tuple(Expression):
    """Several expressions in parentheses: parameters of a lambda, or a list of GROUP BY. No value."""

    items: tuple[Expression, ...]
