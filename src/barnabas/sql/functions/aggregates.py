"""Aggregate functions: what they keep, how a row is added, taken out again, and how groups are merged.

States are made of lists, dicts and values of SQL's types, so that a store can keep them. Null arguments reach
only functions that say so. Does not know: groups, windows, stores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal as Number
from typing import Any

from barnabas.sql.errors import EvaluationError, SqlError
from barnabas.sql.functions import distinct
from barnabas.sql.functions.registry import row_named
from barnabas.sql.types.sql_types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    STRING,
    Array,
    Decimal,
    Map,
    SqlType,
    Struct,
    is_number,
    wrapped_int,
    wrapped_long,
)

LIST_ITEMS_MAX = 1000  # unless the function's limit says otherwise
LIMIT_MAX = 1_000_000
HISTOGRAM_KEYS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Udaf:
    """`add(state, *arguments)` gives the new state. `undo` is None where a row cannot be taken out."""

    result_type: SqlType
    initial: Callable[[], Any]
    add: Callable[..., Any]
    merge: Callable[[Any, Any], Any]
    undo: Callable[..., Any] | None = None
    result: Callable[[Any], Any] = lambda state: state
    takes_null: bool = False
    columns: int = 1  # how many of the arguments are of the row; the others are literals


Make = Callable[[list[SqlType], list[Any]], Udaf]
MAKERS: dict[str, Make] = {}


def makes(*names: str) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        for name in names:
            row_named(name)
            MAKERS[name] = make
        return make

    return register


def aggregate(name: str, types: list[SqlType], literals: list[Any], limit: int | None = None) -> Udaf:
    """The function over arguments of these types. `literals` has the value of each argument that is a
    literal, and None for the others. `limit`: how many values COLLECT_LIST and COLLECT_SET keep."""
    if limit is not None and name.upper() in LIMITED:
        return LIMITED[name.upper()](types, limit)
    return MAKERS[name.upper()](types, literals)


def wrong(name: str, types: list[SqlType]) -> SqlError:
    given = ", ".join(map(str, types))
    return SqlError(f"{name} does not take ({given}): {'; '.join(row_named(name).signatures)}")


def whole_of(kind: SqlType) -> Callable[[Any], Any]:
    if kind == INTEGER:
        return wrapped_int
    if kind == BIGINT:
        return wrapped_long
    if isinstance(kind, Decimal):
        most = Number(10) ** (kind.precision - kind.scale)

        def bounded(value: Any) -> Any:
            if abs(value) >= most:
                raise EvaluationError(f"the sum does not fit {kind}")
            return value

        return bounded
    return float


def zero_of(kind: SqlType) -> Any:
    if isinstance(kind, Decimal):
        return Number(0).scaleb(-kind.scale)
    return 0.0 if kind == DOUBLE else 0


@makes("COUNT")
def count(types: list[SqlType], literals: list[Any]) -> Udaf:
    return Udaf(
        BIGINT,
        lambda: 0,
        lambda n, *_: n + 1,
        lambda a, b: a + b,
        lambda n, *_: n - 1,
        columns=len(types),
        takes_null=not types,
    )


@makes("SUM")
def total(types: list[SqlType], literals: list[Any]) -> Udaf:
    if len(types) != 1 or not is_number(types[0]):
        raise wrong("SUM", types)
    kind, fit = types[0], whole_of(types[0])
    add = lambda a, b: fit(a + b)  # noqa: E731
    return Udaf(kind, lambda: zero_of(kind), add, add, lambda a, b: fit(a - b))


@makes("SUM_LIST")
def sum_list(types: list[SqlType], literals: list[Any]) -> Udaf:
    if len(types) != 1 or not isinstance(types[0], Array) or not is_number(types[0].item):
        raise wrong("SUM_LIST", types)
    kind, fit = types[0].item, whole_of(types[0].item)

    def inner(items: list[Any]) -> Any:
        return sum((each for each in items if each is not None), zero_of(kind))

    return Udaf(
        kind,
        lambda: zero_of(kind),
        lambda a, items: fit(a + inner(items)),
        lambda a, b: fit(a + b),
        lambda a, items: fit(a - inner(items)),
    )


@makes("AVG")
def average(types: list[SqlType], literals: list[Any]) -> Udaf:
    if len(types) != 1 or not is_number(types[0]):
        raise wrong("AVG", types)
    fit = whole_of(types[0])
    return Udaf(
        DOUBLE,
        lambda: [zero_of(types[0]), 0],
        lambda s, v: [fit(s[0] + v), s[1] + 1],
        lambda a, b: [fit(a[0] + b[0]), a[1] + b[1]],
        lambda s, v: [fit(s[0] - v), s[1] - 1],
        lambda s: float(s[0]) / s[1] if s[1] else 0.0,
    )


def extreme(name: str, choose: Callable[[Any, Any], Any]) -> Make:
    def make(types: list[SqlType], literals: list[Any]) -> Udaf:
        if len(types) != 1 or isinstance(types[0], Array | Map | Struct) or types[0] == BOOLEAN:
            raise wrong(name, types)
        pick = lambda a, b: b if a is None else a if b is None else choose(a, b)  # noqa: E731
        return Udaf(types[0], lambda: None, pick, pick)

    return make


MAKERS["MIN"], MAKERS["MAX"] = extreme("MIN", min), extreme("MAX", max)


def removed_last(items: list[Any], value: Any) -> list[Any]:
    for index in range(len(items) - 1, -1, -1):
        if items[index] == value:
            return items[:index] + items[index + 1 :]
    return items


def collect_list(types: list[SqlType], limit: int) -> Udaf:
    if len(types) != 1:
        raise wrong("COLLECT_LIST", types)
    return Udaf(
        Array(types[0]),
        list,
        lambda s, v: [*s, v] if len(s) < limit else s,
        lambda a, b: (a + b)[:limit],
        removed_last,
        takes_null=True,
    )


def collect_set(types: list[SqlType], limit: int) -> Udaf:
    if len(types) != 1:
        raise wrong("COLLECT_SET", types)

    def united(one: list[Any], two: list[Any]) -> list[Any]:
        return (one + [each for each in two if each not in one])[:limit]

    return Udaf(Array(types[0]), list, lambda s, v: united(s, [v]), united, takes_null=True)


LIMITED = {"COLLECT_LIST": collect_list, "COLLECT_SET": collect_set}
for _name, _make in LIMITED.items():
    MAKERS[_name] = lambda types, literals, make=_make: make(types, LIST_ITEMS_MAX)  # type: ignore[misc]


@makes("COUNT_DISTINCT")
def count_distinct(types: list[SqlType], literals: list[Any]) -> Udaf:
    if len(types) != 1:
        raise wrong("COUNT_DISTINCT", types)
    return Udaf(BIGINT, distinct.no_values, distinct.added, distinct.merged, result=distinct.count_of)


@makes("ATTR")
def attribute(types: list[SqlType], literals: list[Any]) -> Udaf:
    if len(types) != 1:
        raise wrong("ATTR", types)

    def change(by: int) -> Callable[[list[list[Any]], Any], list[list[Any]]]:
        def changed(state: list[list[Any]], value: Any) -> list[list[Any]]:
            counts = [[each, n + by] if each == value else [each, n] for each, n in state]
            if by > 0 and all(each != value for each, _ in state):
                counts.append([value, by])
            return [each for each in counts if each[1] > 0]

        return changed

    def merged(one: list[list[Any]], two: list[list[Any]]) -> list[list[Any]]:
        for value, n in two:
            one = change(n)(one, value)
        return one

    only = lambda s: s[0][0] if len(s) == 1 else None  # noqa: E731
    return Udaf(types[0], list, change(1), merged, change(-1), only, takes_null=True)


@makes("HISTOGRAM")
def histogram(types: list[SqlType], literals: list[Any]) -> Udaf:
    if types != [STRING]:
        raise wrong("HISTOGRAM", types)

    def changed(state: dict[str, int], value: str, by: int = 1) -> dict[str, int]:
        if value not in state and (by < 0 or len(state) >= HISTOGRAM_KEYS_MAX):
            return state
        found = {**state, value: state.get(value, 0) + by}
        return {key: n for key, n in found.items() if n > 0}

    def merged(one: dict[str, int], two: dict[str, int]) -> dict[str, int]:
        for key, n in two.items():
            one = changed(one, key, n)
        return one

    return Udaf(Map(STRING, BIGINT), dict, changed, merged, lambda s, v: changed(s, v, -1))


def by_offset(name: str, is_latest: bool) -> Make:
    def make(types: list[SqlType], literals: list[Any]) -> Udaf:
        if not types or len(types) > 3:
            raise wrong(name, types)
        more = literals[1:]
        if any(each is None for each in more):
            raise SqlError(f"{name}: the number of values and ignoreNulls are literals")
        counts = [each for each in more if isinstance(each, int) and not isinstance(each, bool)]
        ignores = next((each for each in more if isinstance(each, bool)), True)
        n = counts[0] if counts else 1
        if n < 1:
            raise SqlError(f"{name}: the number of values is {n}: at least 1 is needed")

        def added(state: list[Any], value: Any) -> list[Any]:
            if value is None and ignores:
                return state
            return [*state, value][-n:] if is_latest else [*state, value][:n]

        def merged(one: list[Any], two: list[Any]) -> list[Any]:
            return (one + two)[-n:] if is_latest else (one + two)[:n]

        kind = Array(types[0]) if counts else types[0]
        result = (lambda s: s) if counts else (lambda s: s[0] if s else None)
        return Udaf(kind, list, added, merged, result=result, takes_null=True)

    return make


for _name, _is_latest in (("LATEST_BY_OFFSET", True), ("EARLIEST_BY_OFFSET", False)):
    makes(_name)(by_offset(_name, _is_latest))


@makes("TOPK")
def topk(types: list[SqlType], literals: list[Any]) -> Udaf:
    k = literals[-1] if literals else None
    if len(types) < 2 or not isinstance(k, int) or k < 1:
        raise SqlError("TOPK(column, …, k): k is a whole number of at least 1")
    others = types[1:-1]

    def kept(rows: list[Any]) -> list[Any]:
        return sorted(rows, key=lambda row: row[0], reverse=True)[:k]

    add = lambda s, first, *more: s if first is None else kept([*s, [first, *more]])  # noqa: E731
    merge = lambda a, b: kept(a + b)  # noqa: E731
    if not others:
        plain = lambda s: [row[0] for row in s]  # noqa: E731
        return Udaf(Array(types[0]), list, add, merge, result=plain)
    names = ["sort_col", *(f"col{index}" for index in range(len(others)))]
    kind = Struct(tuple(zip(names, types[:-1], strict=True)))
    rows = lambda s: [dict(zip(names, row, strict=True)) for row in s]  # noqa: E731
    return Udaf(Array(kind), list, add, merge, result=rows, takes_null=True, columns=len(names))


@makes("TOPKDISTINCT")
def topk_distinct(types: list[SqlType], literals: list[Any]) -> Udaf:
    k = literals[-1] if literals else None
    if len(types) != 2 or not isinstance(k, int) or k < 1:
        raise SqlError("TOPKDISTINCT(column, k): k is a whole number of at least 1")

    def merge(one: list[Any], two: list[Any]) -> list[Any]:
        return sorted([*one, *(each for each in two if each not in one)], reverse=True)[:k]

    return Udaf(Array(types[0]), list, lambda s, v: merge(s, [v]), merge)


def moments(is_root: bool) -> Make:
    """Welford's sums: how many, mean, sum of squared differences."""

    def add(s: list[Any], v: Any) -> list[Any]:
        n = s[0] + 1
        mean = s[1] + (v - s[1]) / n
        return [n, mean, s[2] + (v - s[1]) * (v - mean)]

    def undo(s: list[Any], v: Any) -> list[Any]:
        n = s[0] - 1
        if n <= 0:
            return [0, 0.0, 0.0]
        mean = s[1] - (v - s[1]) / n
        return [n, mean, s[2] - (v - mean) * (v - s[1])]

    def merge(a: list[Any], b: list[Any]) -> list[Any]:
        n = a[0] + b[0]
        if not n:
            return a
        delta = b[1] - a[1]
        return [n, a[1] + delta * b[0] / n, a[2] + b[2] + delta * delta * a[0] * b[0] / n]

    def result(s: list[Any]) -> float:
        found = s[2] / (s[0] - 1) if s[0] > 1 else 0.0
        return math.sqrt(max(found, 0.0)) if is_root else found

    def make(types: list[SqlType], literals: list[Any]) -> Udaf:
        if len(types) != 1 or not is_number(types[0]):
            raise wrong("STDDEV_SAMPLE", types)
        return Udaf(
            DOUBLE,
            lambda: [0, 0.0, 0.0],
            lambda s, v: add(s, float(v)),
            merge,
            lambda s, v: undo(s, float(v)),
            result,
        )

    return make


makes("STDDEV_SAMP")(moments(False))
makes("STDDEV_SAMPLE")(moments(True))


@makes("CORRELATION")
def correlation(types: list[SqlType], literals: list[Any]) -> Udaf:
    if len(types) != 2 or not all(map(is_number, types)):
        raise wrong("CORRELATION", types)

    def terms(x: float, y: float) -> list[float]:
        return [1, x, y, x * x, y * y, x * y]

    def result(s: list[float]) -> float:
        n, x, y, xx, yy, xy = s
        spread = (n * xx - x * x) * (n * yy - y * y)
        return (n * xy - x * y) / math.sqrt(spread) if n > 1 and spread > 0 else math.nan

    def plus(sign: int) -> Callable[..., list[float]]:
        return lambda s, x, y: [a + sign * b for a, b in zip(s, terms(float(x), float(y)), strict=True)]

    merge = lambda a, b: [x + y for x, y in zip(a, b, strict=True)]  # noqa: E731
    return Udaf(DOUBLE, lambda: [0.0] * 6, plus(1), merge, plus(-1), result, columns=2)
