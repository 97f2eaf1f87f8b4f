"""Aggregates that keep values, over columns: lists, sets, the largest ones, counts by value, extreme texts.

The values of a batch come to their groups at once, in the order of the rows. Each step gives the states that
the function gives when it is called row by row. Does not know: windows, stores, decimals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from barnabas.plans.interpreter.aggregations import own
from barnabas.sql.functions import distinct
from barnabas.sql.functions.aggregates import HISTOGRAM_KEYS_MAX, LIST_ITEMS_MAX
from barnabas.sql.types.sql_types import BYTES, DOUBLE, STRING, WHOLE, SqlType
from barnabas.streams.columns.column import Column
from barnabas.streams.columns.grouping import Groups

Joined = list[Any]  # the new state of each group
Step = Callable[[Groups, list[Column], Joined], Joined | None]
Extend = Callable[[Any, list[Any]], Any]  # a state with more values

OF_ANY_TYPE = ("COLLECT_LIST", "LATEST_BY_OFFSET", "EARLIEST_BY_OFFSET")  # they compare no values
# Equal values of these types are one value: no -0.0, no 1.0 beside 1.
PLAIN: frozenset[SqlType] = frozenset((*WHOLE, STRING, BYTES))


def extending(extend: Extend, *, takes_null: bool, is_real: bool = False) -> Step:
    """A step that gives each group its values at once."""

    def step(groups: Groups, given: list[Column], states: Joined) -> Joined | None:
        [column] = given
        found = list(states)
        for group, values in values_of(groups, column, takes_null=takes_null):
            if is_real and has_no_order(values, found[group]):
                return None
            found[group] = extend(own(found[group]), values)
        return found

    return step


def has_no_order(values: list[Any], state: list[Any]) -> bool:
    """Whether a value, or one of the rows of a state, is no number."""
    return any(each != each for each in values) or any(row[0] != row[0] for row in state)


def values_of(groups: Groups, column: Column, *, takes_null: bool) -> list[tuple[int, list[Any]]]:
    """The values of each group that has some, in the order of the rows."""
    ids = groups.ids
    wanted = ids >= 0 if takes_null else (ids >= 0) & ~column.is_null
    places = np.flatnonzero(wanted)
    order = places[np.argsort(ids[places], kind="stable")]
    if not len(order):
        return []
    sorted_ids = ids[order]
    starts = np.flatnonzero(np.diff(sorted_ids, prepend=sorted_ids[0] - 1))
    items = column.take(order).items
    ends = [*starts[1:].tolist(), len(order)]
    bounds = zip(sorted_ids[starts].tolist(), starts.tolist(), ends, strict=True)
    return [(group, items[start:end]) for group, start, end in bounds]


def listed(limit: int) -> Extend:
    return lambda state, values: (
        [*state, *values[: limit - len(state)]] if len(state) < limit else list(state)
    )


def united(limit: int) -> Extend:
    return lambda state, values: list(dict.fromkeys((*state, *values)))[:limit]


def largest(k: int) -> Extend:
    """Of equal values the first ones stay, in their order."""

    def extend(state: list[Any], values: list[Any]) -> list[Any]:
        rows = [*state, *([each] for each in values)]
        return sorted(rows, key=lambda row: row[0], reverse=True)[:k]

    return extend


def largest_distinct(k: int) -> Extend:
    return lambda state, values: sorted({*state, *values}, reverse=True)[:k]


def newest(n: int) -> Extend:
    return lambda state, values: [*state, *values][-n:]


def oldest(n: int) -> Extend:
    return lambda state, values: [*state, *values][:n]


def counted_values(state: Any, values: list[Any]) -> Any:
    """A value that comes again changes no state."""
    for each in dict.fromkeys(values):
        state = distinct.added(state, each)
    return state


def histogram(state: dict[str, int], values: list[str]) -> dict[str, int]:
    found = dict(state)
    for each in values:
        if each in found:
            found[each] += 1
        elif len(found) < HISTOGRAM_KEYS_MAX:
            found[each] = 1
    return found


def extreme(choose: Callable[[list[str]], str]) -> Extend:
    return lambda state, values: choose(values if state is None else [state, *values])


def collecting_step(
    name: str, kinds: Sequence[SqlType], literals: Sequence[Any], limit: int | None
) -> Step | None:
    """The step of a function; None where it has none for these types."""
    if not kinds or (
        kinds[0] not in PLAIN and name not in OF_ANY_TYPE and (name, kinds[0]) != ("TOPK", DOUBLE)
    ):
        return None
    most = LIST_ITEMS_MAX if limit is None else limit
    match name:
        case "COLLECT_LIST":
            return extending(listed(most), takes_null=True)
        case "COLLECT_SET":
            return extending(united(most), takes_null=True)
        case "TOPK" if len(kinds) == 2:
            return extending(largest(literals[-1]), takes_null=False, is_real=kinds[0] == DOUBLE)
        case "TOPKDISTINCT":
            return extending(largest_distinct(literals[-1]), takes_null=False)
        case "COUNT_DISTINCT":
            return extending(counted_values, takes_null=False)
        case "HISTOGRAM":
            return extending(histogram, takes_null=False)
        case "MIN" | "MAX" if kinds[0] == STRING:
            return extending(extreme(min if name == "MIN" else max), takes_null=False)
        case "LATEST_BY_OFFSET" | "EARLIEST_BY_OFFSET" if len(kinds) == 2 and type(literals[1]) is int:
            return extending(
                (newest if name == "LATEST_BY_OFFSET" else oldest)(literals[1]), takes_null=False
            )
    return None
