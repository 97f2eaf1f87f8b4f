"""Functions of arrays and maps, of nulls, and lambdas. A lambda arrives as a Python callable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.registry import function

SERIES_LENGTH_MAX = 1_000_000
ORDERS = {"ASC": False, "ASCENDING": False, "DESC": True, "DESCENDING": True}


def distinct(items: list[Any]) -> list[Any]:
    """First occurrences, in order. Structs and arrays have no hash, so they are compared."""
    try:
        return list(dict.fromkeys(items))
    except TypeError:
        found: list[Any] = []
        for each in items:
            if each not in found:
                found.append(each)
        return found


@function("ARRAY_CONCAT")
def array_concat(one: list[Any] | None, two: list[Any] | None) -> list[Any] | None:
    return None if one is None and two is None else [*(one or ()), *(two or ())]


@function("ARRAY_CONTAINS")
def array_contains(items: list[Any] | None, item: Any) -> bool:
    return items is not None and item in items


@function("ARRAY_DISTINCT")
def array_distinct(items: list[Any] | None) -> list[Any] | None:
    return None if items is None else distinct(items)


@function("ARRAY_EXCEPT")
def array_except(one: list[Any], two: list[Any]) -> list[Any]:
    return [each for each in distinct(one) if each not in two]


@function("ARRAY_INTERSECT")
def array_intersect(one: list[Any], two: list[Any]) -> list[Any]:
    return [each for each in distinct(one) if each in two]


@function("ARRAY_UNION")
def array_union(one: list[Any], two: list[Any]) -> list[Any]:
    return distinct([*one, *two])


@function("ARRAY_JOIN")
def array_join(items: list[Any] | None, delimiter: str | None = ",") -> str | None:
    if items is None:
        return None
    return (delimiter or "").join(map(as_text, items))


def as_text(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
    return str(value)


@function("ARRAY_LENGTH")
def array_length(items: list[Any]) -> int:
    return len(items)


@function("ARRAY_MAX")
def array_max(items: list[Any] | None) -> Any:
    return max((each for each in items or () if each is not None), default=None)


@function("ARRAY_MIN")
def array_min(items: list[Any] | None) -> Any:
    return min((each for each in items or () if each is not None), default=None)


@function("ARRAY_REMOVE")
def array_remove(items: list[Any] | None, item: Any) -> list[Any] | None:
    return None if items is None else [each for each in items if each != item]


@function("ARRAY_SORT")
def array_sort(items: list[Any], order: str = "ASC") -> list[Any] | None:
    is_reversed = ORDERS.get(order.upper())
    if is_reversed is None:
        return None
    known = sorted((each for each in items if each is not None), reverse=is_reversed)
    return known + [None] * (len(items) - len(known))


@function("AS_MAP")
def as_map(keys: list[str], values: list[Any]) -> dict[str, Any]:
    return {key: values[index] if index < len(values) else None for index, key in enumerate(keys)}


@function("AS_VALUE")
def as_value(value: Any) -> Any:
    return value


@function("ELT")
def nth(number: int | None, *texts: str) -> str | None:
    return texts[number - 1] if number is not None and 0 < number <= len(texts) else None


@function("FIELD")
def place_of(text: str | None, *texts: str) -> int:
    return texts.index(text) + 1 if text is not None and text in texts else 0


@function("ENTRIES")
def entries(given: dict[str, Any] | None, is_sorted: bool) -> list[dict[str, Any]] | None:
    if given is None:
        return None
    names = sorted(given) if is_sorted else given
    return [{"K": name, "V": given[name]} for name in names]


@function("MAP_KEYS")
def map_keys(given: dict[str, Any]) -> list[str]:
    return list(given)


@function("MAP_VALUES")
def map_values(given: dict[str, Any]) -> list[Any]:
    return list(given.values())


@function("MAP_UNION")
def map_union(one: dict[str, Any] | None, two: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if one is None and two is None else {**(one or {}), **(two or {})}


@function("SLICE")
def array_slice(items: list[Any] | None, first: int | None, last: int | None) -> list[Any] | None:
    if items is None:
        return None
    start, end = (1 if first is None else first), (len(items) if last is None else last)
    return items[start - 1 : end] if 1 <= start <= end + 1 and end <= len(items) else None


@function("GENERATE_SERIES")
def series(start: int | None, end: int | None, *steps: int | None) -> list[int]:
    if start is None or end is None or None in steps:
        raise EvaluationError("GENERATE_SERIES takes no nulls")
    by = steps[0] if steps and steps[0] is not None else 1 if end >= start else -1
    if by == 0 or by * (end - start) < 0:
        raise EvaluationError(f"GENERATE_SERIES: a step of {by} does not lead from {start} to {end}")
    if abs(end - start) // abs(by) >= SERIES_LENGTH_MAX:
        raise EvaluationError(f"GENERATE_SERIES makes at most {SERIES_LENGTH_MAX} numbers")
    return list(range(start, end + (1 if by > 0 else -1), by))


@function("COALESCE")
def coalesce(*values: Any) -> Any:
    return next((each for each in values if each is not None), None)


@function("IFNULL")
def if_null(value: Any, other: Any) -> Any:
    return other if value is None else value


@function("NULLIF")
def null_if(value: Any, other: Any) -> Any:
    return None if value == other else value


@function("FILTER")
def kept(items: Any, accepts: Callable[..., bool]) -> Any:
    if items is None:
        return None
    if isinstance(items, dict):
        return {key: value for key, value in items.items() if accepts(key, value)}
    return [each for each in items if accepts(each)]


@function("REDUCE")
def reduced(items: Any, state: Any, step: Callable[..., Any]) -> Any:
    if state is None or items is None:
        return state
    for each in items.items() if isinstance(items, dict) else items:
        state = step(state, *each) if isinstance(items, dict) else step(state, each)
    return state


@function("TRANSFORM")
def transformed(items: Any, code: Callable[..., Any], of_value: Callable[..., Any] | None = None) -> Any:
    if items is None:
        return None
    if of_value is None:
        return [code(each) for each in items]
    found: dict[Any, Any] = {}
    for key, value in items.items():
        name = code(key, value)
        if name in found:
            raise EvaluationError(f"TRANSFORM makes the key {name!r} twice")
        found[name] = of_value(key, value)
    return found


@function("EXPLODE")
def explode(items: list[Any] | None) -> list[Any]:
    """The rows of a table function."""
    return items or []


@function("CUBE_EXPLODE")
def cube_explode(items: list[Any] | None) -> list[list[Any]]:
    if items is None:
        return []
    if len(items) > 20:
        raise EvaluationError(f"CUBE_EXPLODE takes at most 20 columns, not {len(items)}")
    rows: list[list[Any]] = [[]]
    for each in items:
        options = [None] if each is None else [None, each]
        rows = [[*row, option] for row in rows for option in options]
    return rows
