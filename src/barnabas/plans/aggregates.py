"""Aggregates: how many records become one value, as Python functions or by built-in names.

In: functions of the user, or built-in functions over expressions. Out: values that a node holds;
`functions_of` gives every aggregate as five functions, which is all that the interpreter needs. Does not
know: keys, windows, stores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from barnabas.plans.expressions import Expression, as_expression, col

Initializer = Callable[[], Any]
Adder = Callable[[Any, Any, Any], Any]  # key, value, aggregate
Merger = Callable[[Any, Any, Any], Any]  # key, aggregate, aggregate
Reducer = Callable[[Any, Any], Any]  # aggregate, value


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Functions of the user. Sessions need `merger`, tables need `subtractor`. `finisher` makes the result
    that readers see from what the store keeps; without one they are the same."""

    initializer: Initializer
    adder: Adder
    subtractor: Adder | None = None
    merger: Merger | None = None
    finisher: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class Reduce:
    """The first value is taken as it is, the adder is called from the second on."""

    adder: Reducer
    subtractor: Reducer | None = None


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A function by its name in `aggregate_functions`: over an expression of the record, with parameters."""

    name: str
    arguments: tuple[Expression, ...] = ()
    parameters: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class BuiltIns:
    """Several built-in functions, one field each; a single one without a name gives the bare result."""

    fields: tuple[tuple[str | None, BuiltIn], ...]

    @property
    def is_bare(self) -> bool:
        return len(self.fields) == 1 and self.fields[0][0] is None


class TypedAggregate:
    """The base of aggregates that another part brings along: values that compilers read, and
    `functions()`, which gives them as `aggregate_functions.Functions` to the interpreter."""

    __slots__ = ()

    def functions(self) -> Any:
        raise NotImplementedError


AnyAggregate = Aggregate | Reduce | BuiltIns | TypedAggregate


class F:
    """Built-in aggregate functions: `F.sum("amount")`, `F.count()`, `F.avg(col("a") * 2)`."""

    @staticmethod
    def named(name: str, *arguments: Any, parameters: tuple[Any, ...] = ()) -> BuiltIn:
        return BuiltIn(name.lower(), tuple(_argument(each) for each in arguments), parameters)

    @staticmethod
    def count(argument: Any = None) -> BuiltIn:
        """Records, or those whose argument is not null."""
        return BuiltIn("count", () if argument is None else (_argument(argument),))

    @staticmethod
    def sum(argument: Any) -> BuiltIn:
        return BuiltIn("sum", (_argument(argument),))

    @staticmethod
    def min(argument: Any) -> BuiltIn:
        return BuiltIn("min", (_argument(argument),))

    @staticmethod
    def max(argument: Any) -> BuiltIn:
        return BuiltIn("max", (_argument(argument),))

    @staticmethod
    def avg(argument: Any) -> BuiltIn:
        return BuiltIn("avg", (_argument(argument),))

    @staticmethod
    def latest(argument: Any) -> BuiltIn:
        """The last value that is not null, by arrival."""
        return BuiltIn("latest", (_argument(argument),))

    @staticmethod
    def earliest(argument: Any) -> BuiltIn:
        return BuiltIn("earliest", (_argument(argument),))

    @staticmethod
    def collect_list(argument: Any, limit: int = 1000) -> BuiltIn:
        return BuiltIn("collect_list", (_argument(argument),), (limit,))

    @staticmethod
    def collect_set(argument: Any, limit: int = 1000) -> BuiltIn:
        return BuiltIn("collect_set", (_argument(argument),), (limit,))

    @staticmethod
    def topk(argument: Any, k: int) -> BuiltIn:
        return BuiltIn("topk", (_argument(argument),), (k,))

    @staticmethod
    def topk_distinct(argument: Any, k: int) -> BuiltIn:
        return BuiltIn("topk_distinct", (_argument(argument),), (k,))

    @staticmethod
    def count_distinct(argument: Any) -> BuiltIn:
        return BuiltIn("count_distinct", (_argument(argument),))

    @staticmethod
    def histogram(argument: Any, limit: int = 1000) -> BuiltIn:
        return BuiltIn("histogram", (_argument(argument),), (limit,))


def _argument(value: Any) -> Expression:
    return col(value) if isinstance(value, str) else as_expression(value)
