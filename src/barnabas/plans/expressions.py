"""Expressions: functions of a record as small trees that every road understands.

In: columns, literals, operators, calls of functions by name. Out: values that a compiler reads: the
interpreter evaluates them record by record (`evaluation`), the Spark compiler turns them into columns.
Does not know: how functions compute (`functions` has them by name).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal

Side = Literal["value", "key", "left", "right"]


class Expression:
    """A node of a tree. Operators build larger trees; `==` too, so expressions compare by identity."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __add__(self, other: Any) -> Binary:
        return Binary("+", self, as_expression(other))

    def __radd__(self, other: Any) -> Binary:
        return Binary("+", as_expression(other), self)

    def __sub__(self, other: Any) -> Binary:
        return Binary("-", self, as_expression(other))

    def __rsub__(self, other: Any) -> Binary:
        return Binary("-", as_expression(other), self)

    def __mul__(self, other: Any) -> Binary:
        return Binary("*", self, as_expression(other))

    def __rmul__(self, other: Any) -> Binary:
        return Binary("*", as_expression(other), self)

    def __truediv__(self, other: Any) -> Binary:
        return Binary("/", self, as_expression(other))

    def __rtruediv__(self, other: Any) -> Binary:
        return Binary("/", as_expression(other), self)

    def __mod__(self, other: Any) -> Binary:
        return Binary("%", self, as_expression(other))

    def __neg__(self) -> Unary:
        return Unary("-", self)

    def __eq__(self, other: object) -> Binary:  # type: ignore[override]
        return Binary("=", self, as_expression(other))

    def __ne__(self, other: object) -> Binary:  # type: ignore[override]
        return Binary("!=", self, as_expression(other))

    def __lt__(self, other: Any) -> Binary:
        return Binary("<", self, as_expression(other))

    def __le__(self, other: Any) -> Binary:
        return Binary("<=", self, as_expression(other))

    def __gt__(self, other: Any) -> Binary:
        return Binary(">", self, as_expression(other))

    def __ge__(self, other: Any) -> Binary:
        return Binary(">=", self, as_expression(other))

    def __and__(self, other: Any) -> Binary:
        return Binary("and", self, as_expression(other))

    def __or__(self, other: Any) -> Binary:
        return Binary("or", self, as_expression(other))

    def __invert__(self) -> Unary:
        return Unary("not", self)

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value: use & | ~ in place of and, or, not")

    def __getitem__(self, index: Any) -> Expression:
        """A field of a struct by name, an item of an array by number, of a map by key."""
        return Field(self, index) if isinstance(index, str) else Item(self, as_expression(index))

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("an expression cannot be iterated")

    def is_null(self) -> Unary:
        return Unary("is null", self)

    def is_not_null(self) -> Unary:
        return Unary("is not null", self)

    def is_in(self, *options: Any) -> In:
        return In(self, tuple(as_expression(option) for option in options))

    def between(self, low: Any, high: Any) -> Binary:
        return Binary("and", self >= low, self <= high)

    def like(self, pattern: Any) -> Call:
        return Call("like", (self, as_expression(pattern)))

    def cast(self, type_name: str) -> Cast:
        return Cast(self, type_name)

    def children(self) -> Iterator[Expression]:
        for field in fields(self):  # type: ignore[arg-type]
            yield from _inside(getattr(self, field.name))


def _inside(value: Any) -> Iterator[Expression]:
    if isinstance(value, Expression):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _inside(each)


@dataclass(frozen=True, eq=False, slots=True)
class Column(Expression):
    """A field of the value, of the key, or of one side of a join."""

    name: str
    side: Side = "value"


@dataclass(frozen=True, eq=False, slots=True)
class Whole(Expression):
    """The whole key or value, or one side of a join."""

    side: Side = "value"


MetaName = Literal["timestamp", "topic", "partition", "offset", "window_start", "window_end", "headers"]


@dataclass(frozen=True, eq=False, slots=True)
class Meta(Expression):
    """The parts of a record beside key and value."""

    name: MetaName


@dataclass(frozen=True, eq=False, slots=True)
class Literal_(Expression):
    """A constant."""

    value: Any


@dataclass(frozen=True, eq=False, slots=True)
class Unary(Expression):
    """`-`, `not`, `is null`, `is not null`."""

    operator: str
    operand: Expression


@dataclass(frozen=True, eq=False, slots=True)
class Binary(Expression):
    """`+ - * / div % = != < <= > >= and or`, `is distinct from`; SQL's rules of null.

    `/` divides as Spark and Python do; `div` divides integers as Java does, towards zero. `%` has the sign of
    the dividend, as in Java.
    """

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, eq=False, slots=True)
class In(Expression):
    operand: Expression
    options: tuple[Expression, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Call(Expression):
    """A function by its name in `functions`; names are lower case."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Case(Expression):
    """The result of the first condition that is true, else the default."""

    whens: tuple[tuple[Expression, Expression], ...]
    default: Expression | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Cast(Expression):
    """A type by name: boolean, int, bigint, double, string, bytes, timestamp, date, time, decimal(p,s)."""

    operand: Expression
    type_name: str


@dataclass(frozen=True, eq=False, slots=True)
class Field(Expression):
    """A field of a struct."""

    operand: Expression
    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Item(Expression):
    """An item of an array (from 0; negative from the end) or of a map."""

    operand: Expression
    index: Expression


@dataclass(frozen=True, eq=False, slots=True)
class Struct(Expression):
    """A row of named fields: the value of a selection."""

    fields: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, eq=False, slots=True)
class ArrayOf(Expression):
    items: tuple[Expression, ...]


@dataclass(frozen=True, eq=False, slots=True)
class MapOf(Expression):
    entries: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True, eq=False, slots=True)
class Variable(Expression):
    """A parameter of an enclosing lambda."""

    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Lambda(Expression):
    """A function as an argument: its parameters and its body."""

    parameters: tuple[str, ...]
    body: Expression


def as_expression(value: Any) -> Expression:
    return value if isinstance(value, Expression) else Literal_(value)


def col(name: str) -> Column:
    """A field of the record's value."""
    return Column(name)


def key(name: str | None = None) -> Expression:
    """The record's key, or a field of it."""
    return Whole("key") if name is None else Column(name, "key")


def value() -> Whole:
    """The record's whole value."""
    return Whole("value")


def left(name: str | None = None) -> Expression:
    """The left side of a join, or a field of it."""
    return Whole("left") if name is None else Column(name, "left")


def right(name: str | None = None) -> Expression:
    """The right side of a join, or a field of it."""
    return Whole("right") if name is None else Column(name, "right")


def timestamp() -> Meta:
    return Meta("timestamp")


def lit(constant: Any) -> Literal_:
    return Literal_(constant)


def struct(**named: Any) -> Struct:
    """A row: `struct(user=key(), total=col("a") + col("b"))`."""
    return Struct(tuple((name, as_expression(each)) for name, each in named.items()))


def call(name: str, *arguments: Any) -> Call:
    return Call(name.lower(), tuple(as_expression(argument) for argument in arguments))


def case(*whens: tuple[Any, Any], default: Any = None) -> Case:
    pairs = tuple((as_expression(when), as_expression(then)) for when, then in whens)
    return Case(pairs, as_expression(default))


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything inside of it."""
    yield expression
    for child in expression.children():
        yield from walk(child)
