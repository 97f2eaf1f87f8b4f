"""Built-in aggregate functions by name, and every aggregate as five Python functions.

In: an aggregate of a plan. Out: `Functions`: initializer, adder, subtractor, merger, finisher. What a
function keeps between records consists of numbers, texts and lists, so that any format can store it. Does
not know: keys, windows, stores.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from barnabas.plans.aggregates import AnyAggregate, BuiltIn, BuiltIns, Reduce, TypedAggregate
from barnabas.plans.evaluation import compile_expression


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """`add(state, value)`, `subtract(state, value)`, `merge(state, state)`, `finish(state)`. `parameters`
    come last.

    `takes_null`: null arguments reach it; otherwise they are left out."""

    initial: Callable[..., Any]
    add: Callable[..., Any]
    subtract: Callable[..., Any] | None = None
    merge: Callable[..., Any] | None = None
    finish: Callable[..., Any] | None = None
    takes_null: bool = False


_FUNCTIONS: dict[str, AggregateFunction] = {}


def register_aggregate(name: str, function: AggregateFunction) -> None:
    _FUNCTIONS[name.lower()] = function


def aggregate_named(name: str) -> AggregateFunction:
    try:
        return _FUNCTIONS[name]
    except KeyError:
        near = difflib.get_close_matches(name, _FUNCTIONS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"there is no aggregate function {name!r}{hint}") from None


@dataclass(frozen=True, slots=True)
class Functions:
    """An aggregate as the interpreter calls it. `scope` is that of `evaluation`; adders get (key, value,
    state, scope) and reducers of the user are wrapped so that None is the state before the first value."""

    initial: Callable[[], Any]
    add: Callable[[Any, Any, Any, Any], Any]
    subtract: Callable[[Any, Any, Any, Any], Any] | None
    merge: Callable[[Any, Any, Any], Any] | None
    finish: Callable[[Any], Any] | None
    is_reduce: bool = False


def functions_of(aggregate: AnyAggregate) -> Functions:
    if isinstance(aggregate, TypedAggregate):
        made: Functions = aggregate.functions()
        return made
    if isinstance(aggregate, BuiltIns):
        return _built_in(aggregate)
    if isinstance(aggregate, Reduce):
        return _reduce(aggregate)
    adder, subtractor = aggregate.adder, aggregate.subtractor
    return Functions(
        aggregate.initializer,
        lambda key, value, state, scope: adder(key, value, state),
        None if subtractor is None else lambda key, value, state, scope: subtractor(key, value, state),
        aggregate.merger,
        aggregate.finisher,
    )


def _reduce(aggregate: Reduce) -> Functions:
    adder, subtractor = aggregate.adder, aggregate.subtractor

    def add(key: Any, value: Any, state: Any, scope: Any) -> Any:
        return value if state is None else adder(state, value)

    def merge(key: Any, one: Any, two: Any) -> Any:
        return two if one is None else adder(one, two)

    return Functions(
        lambda: None,
        add,
        None if subtractor is None else lambda key, value, state, scope: subtractor(state, value),
        merge,
        None,
        is_reduce=True,
    )


def _built_in(aggregate: BuiltIns) -> Functions:
    parts = [_Part(built_in) for _, built_in in aggregate.fields]
    names = [name for name, _ in aggregate.fields]
    if aggregate.is_bare:
        part = parts[0]
        return Functions(
            part.initial,
            lambda key, value, state, scope: part.add(state, scope),
            None if part.subtract is None else lambda key, value, state, scope: part.subtract(state, scope),  # type: ignore[misc]
            None if part.merge is None else lambda key, one, two: part.merge(one, two),  # type: ignore[misc]
            part.finish,
        )
    finishes = any(part.finish is not None for part in parts)

    def finish(state: Any) -> dict[Any, Any]:
        return {
            name: each if part.finish is None else part.finish(each)
            for name, part, each in zip(names, parts, (state[name] for name in names), strict=True)
        }

    def subtract(key: Any, value: Any, state: Any, scope: Any) -> Any:
        return {n: p.subtract(state[n], scope) for n, p in zip(names, parts, strict=True)}  # type: ignore[misc]

    def merge(key: Any, one: Any, two: Any) -> Any:
        return {n: p.merge(one[n], two[n]) for n, p in zip(names, parts, strict=True)}  # type: ignore[misc]

    return Functions(
        lambda: {name: part.initial() for name, part in zip(names, parts, strict=True)},
        lambda key, value, state, scope: {
            n: p.add(state[n], scope) for n, p in zip(names, parts, strict=True)
        },
        subtract if all(part.subtract is not None for part in parts) else None,
        merge if all(part.merge is not None for part in parts) else None,
        finish if finishes else None,
    )


class _Part:
    """One built-in function bound to its argument."""

    def __init__(self, built_in: BuiltIn) -> None:
        function = aggregate_named(built_in.name)
        more = built_in.parameters
        arguments = [compile_expression(argument) for argument in built_in.arguments]
        self.initial: Callable[[], Any] = lambda: function.initial(*more)

        def argument_of(scope: Any) -> Any:
            if len(arguments) == 1:
                return arguments[0](scope)
            return tuple(argument(scope) for argument in arguments) if arguments else True

        def applied(change: Callable[..., Any]) -> Callable[[Any, Any], Any]:
            def apply(state: Any, scope: Any) -> Any:
                value = argument_of(scope)
                return state if value is None and not function.takes_null else change(state, value, *more)

            return apply

        self.add = applied(function.add)
        self.subtract = None if function.subtract is None else applied(function.subtract)
        merge, finish = function.merge, function.finish
        self.merge = None if merge is None else lambda one, two: merge(one, two, *more)
        self.finish = None if finish is None else lambda state: finish(state, *more)


def _none() -> None:
    return None


def _bounded(items: list[Any], limit: int) -> list[Any]:
    return items[:limit]


def _topk(state: list[Any], value: Any, k: int) -> list[Any]:
    return sorted([*state, value], reverse=True)[:k]


def _topk_distinct(state: list[Any], value: Any, k: int) -> list[Any]:
    return state if value in state else _topk(state, value, k)


def _without(state: list[Any], value: Any, *_: Any) -> list[Any]:
    at = state.index(value) if value in state else None
    return state if at is None else state[:at] + state[at + 1 :]


def _histogram(state: dict[str, int], value: Any, limit: int) -> dict[str, int]:
    key = str(value)
    if key not in state and len(state) >= limit:
        return state
    return {**state, key: state.get(key, 0) + 1}


def _histogram_less(state: dict[str, int], value: Any, limit: int) -> dict[str, int]:
    left = {**state, str(value): state.get(str(value), 0) - 1}
    return {key: count for key, count in left.items() if count > 0}


def _histogram_sum(one: dict[str, int], two: dict[str, int], limit: int) -> dict[str, int]:
    keys = list(dict.fromkeys([*one, *two]))[:limit]
    return {key: one.get(key, 0) + two.get(key, 0) for key in keys}


for _name, _function in {
    "count": AggregateFunction(lambda: 0, lambda s, v: s + 1, lambda s, v: s - 1, lambda a, b: a + b),
    "sum": AggregateFunction(lambda: 0, lambda s, v: s + v, lambda s, v: s - v, lambda a, b: a + b),
    "min": AggregateFunction(
        _none,
        lambda s, v: v if s is None or v < s else s,
        merge=lambda a, b: b if a is None else a if b is None else min(a, b),
    ),
    "max": AggregateFunction(
        _none,
        lambda s, v: v if s is None or v > s else s,
        merge=lambda a, b: b if a is None else a if b is None else max(a, b),
    ),
    "avg": AggregateFunction(
        lambda: [0, 0],
        lambda s, v: [s[0] + v, s[1] + 1],
        lambda s, v: [s[0] - v, s[1] - 1],
        lambda a, b: [a[0] + b[0], a[1] + b[1]],
        lambda s: s[0] / s[1] if s[1] else 0.0,
    ),
    "latest": AggregateFunction(_none, lambda s, v: v, merge=lambda a, b: a if b is None else b),
    "earliest": AggregateFunction(
        _none, lambda s, v: v if s is None else s, merge=lambda a, b: b if a is None else a
    ),
    "collect_list": AggregateFunction(
        lambda limit: [],
        lambda s, v, limit: _bounded([*s, v], limit),
        _without,
        lambda a, b, limit: _bounded([*a, *b], limit),
        takes_null=True,
    ),
    "collect_set": AggregateFunction(
        lambda limit: [],
        lambda s, v, limit: s if v in s else _bounded([*s, v], limit),
        merge=lambda a, b, limit: _bounded([*a, *(v for v in b if v not in a)], limit),
        takes_null=True,
    ),
    "topk": AggregateFunction(lambda k: [], _topk, merge=lambda a, b, k: sorted([*a, *b], reverse=True)[:k]),
    "topk_distinct": AggregateFunction(
        lambda k: [], _topk_distinct, merge=lambda a, b, k: sorted({*a, *b}, reverse=True)[:k]
    ),
    "count_distinct": AggregateFunction(
        list,
        lambda s, v: s if v in s else [*s, v],
        merge=lambda a, b: [*a, *(v for v in b if v not in a)],
        finish=len,
    ),
    "histogram": AggregateFunction(lambda limit: {}, _histogram, _histogram_less, _histogram_sum),
}.items():
    register_aggregate(_name, _function)
