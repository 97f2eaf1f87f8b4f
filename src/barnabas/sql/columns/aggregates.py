"""Aggregate functions of SQL over columns: the rows of a batch join the states of their groups at once.

COUNT, SUM, AVG, MIN, MAX, LATEST_BY_OFFSET and EARLIEST_BY_OFFSET need no Python for a row, those that keep
values get all of a group at once (`collecting`). Other functions
are called for each row that they take, in its order, on the state of its group; rows that they refuse are
reported. Importing this module registers it. Does not know: windows, stores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from barnabas.plans.interpreter.aggregations import own
from barnabas.sql.columns.collecting import collecting_step
from barnabas.sql.columns.values import column_of, full, operand_of
from barnabas.sql.expressions.aggregating import AggregateCall, SqlAggregates
from barnabas.sql.functions.aggregates import Udaf, whole_of
from barnabas.sql.types.sql_types import DOUBLE, WHOLE
from barnabas.streams.columns import kernel
from barnabas.streams.columns.aggregates import Shape, States, counted, register_aggregate_form
from barnabas.streams.columns.column import Column, Fields, Rows, row_at
from barnabas.streams.columns.expressions import compile_column, cursor_of
from barnabas.streams.columns.grouping import Groups

Joined = list[Any]  # the new state of each group
Step = Callable[[Groups, list[Column], Joined], Joined | None]  # None: the batch is not plain


class ColumnAggregates:
    """All functions of a statement."""

    def __init__(self, aggregates: SqlAggregates) -> None:
        self._calls, self._logger = aggregates.calls, aggregates.logger
        self._is_count = aggregates.is_count
        self._codes = [call.code() for call in aggregates.calls]
        self._arguments = [
            [compile_column(each) for each in call.arguments[: code.columns]]
            for call, code in zip(self._calls, self._codes, strict=True)
        ]
        self._steps = [step_of(call, code) for call, code in zip(self._calls, self._codes, strict=True)]

    def add(self, groups: Groups, rows: Rows, before: States) -> tuple[list[Any], Any]:
        if self._is_count:  # its state is a number, no list
            return counted(groups, rows, before)
        newest = np.fromiter((-1 if row is None else row[1] for row in before), np.int64, groups.count)
        kernel.max_by(groups.ids, rows.times, newest)
        columns = []
        for place, (call, code) in enumerate(zip(self._calls, self._codes, strict=True)):
            given = [each(rows) for each in self._arguments[place]]
            states = [code.initial() if row is None else row[0][place] for row in before]
            step = self._steps[place]
            found = None if step is None else step(groups, given, states)
            if found is None:
                found = self._one_by_one(call, code, groups, rows, given, states)
            columns.append(found)
        return [list(some) for some in zip(*columns, strict=True)], newest

    def _one_by_one(
        self, call: AggregateCall, code: Udaf, groups: Groups, rows: Rows, given: list[Column], states: Joined
    ) -> Joined:
        add, takes_null, cursor = code.add, code.takes_null, cursor_of(rows)
        states = [own(each) for each in states]  # a function may change its state in place
        arguments = zip(*(each.items for each in given), strict=True) if given else iter([()] * len(rows))
        for place, (group, some) in enumerate(zip(groups.ids.tolist(), arguments, strict=True)):
            if not takes_null and None in some and any(each is None for each in some):
                continue
            try:
                states[group] = add(states[group], *some)
            except Exception as error:
                cursor.row = place
                message = f"Error computing the aggregate {call.name}"
                cursor.report(self._logger, message, error, row_at(rows, place))
        return states

    def results(self, states: list[Any]) -> Column:
        if self._is_count:
            states = [None if each is None else [each] for each in states]
        columns = []
        for place, (call, code) in enumerate(zip(self._calls, self._codes, strict=True)):
            result = code.result
            columns.append(
                column_of([None if each is None else result(each[place]) for each in states], call.kind)
            )
        nulls = np.fromiter((each is None for each in states), np.bool_, len(states))
        return Fields([call.field for call in self._calls], columns, len(states), nulls)


def step_of(call: AggregateCall, code: Udaf) -> Step | None:
    """The form of a function; None where there is none for its types."""
    if call.user is not None:
        return None
    if call.name == "COUNT":
        return count
    kind = call.kinds[0] if call.kinds else None
    if kind in (*WHOLE, DOUBLE):
        if call.name == "SUM":
            return totals(kind, has_count=False)
        if call.name == "AVG":
            return totals(kind, has_count=True)
        if call.name in ("MIN", "MAX"):
            return extremes(kind, call.name == "MAX")
    if call.name in ("LATEST_BY_OFFSET", "EARLIEST_BY_OFFSET") and len(call.kinds) == 1:
        return by_offset(call.name == "LATEST_BY_OFFSET")
    return collecting_step(call.name, call.kinds, call.literals, call.limit)


def reasons_of(aggregates: SqlAggregates) -> list[str]:
    """Names of the functions that run as Python for each row."""
    return [
        f"{call.name}() runs for each row" for call in aggregates.calls if step_of(call, call.code()) is None
    ]


def count(groups: Groups, given: list[Column], states: Joined) -> Joined:
    ids = groups.ids
    if given:
        nulls = given[0].is_null
        for each in given[1:]:
            nulls = nulls | each.is_null
        ids = ids[~nulls] if nulls.any() else ids
    more = np.bincount(ids, minlength=groups.count).tolist()
    return [state + each for state, each in zip(states, more, strict=True)]


def numbers_of(column: Column, kind: Any, count: int) -> tuple[Any, Any] | None:
    """The numbers of a column, and which of them are there; None where they are not plain, or one is none."""
    operand = operand_of(column, kind)
    if operand is None:
        return None
    array = full(operand, count)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    numbers = array.fill_null(0).to_numpy(zero_copy_only=False)
    return None if kind == DOUBLE and np.isnan(numbers).any() else (numbers, valid)


def totals(kind: Any, *, has_count: bool) -> Step:
    """SUM, and AVG with its count: whole numbers wrap, doubles are added in the order of the rows."""
    wrap, is_real = whole_of(kind), kind == DOUBLE

    def step(groups: Groups, given: list[Column], states: Joined) -> Joined | None:
        found = numbers_of(given[0], kind, len(groups.ids))
        if found is None:
            return None
        begun = [state[0] for state in states] if has_count else states
        sums = np.array(begun, np.float64 if is_real else np.int64)
        counts = np.zeros(groups.count, np.int64)
        kernel.sum_by(groups.ids, found[0], found[1], sums, counts)
        ends = sums.tolist() if is_real else [wrap(each) for each in sums.tolist()]
        if not has_count:
            return ends
        pairs = zip(ends, states, counts.tolist(), strict=True)
        return [[end, state[1] + more] for end, state, more in pairs]

    return step


def extremes(kind: Any, wants_max: bool) -> Step:
    def step(groups: Groups, given: list[Column], states: Joined) -> Joined | None:
        found = numbers_of(given[0], kind, len(groups.ids))
        if found is None or any(each != each for each in states):
            return None
        has = np.fromiter((each is not None for each in states), np.bool_, len(states))
        out = np.array([0 if each is None else each for each in states], found[0].dtype)
        kernel.extremes_by(groups.ids, found[0], found[1], wants_max, out, has)
        pairs = zip(out.tolist(), has.tolist(), strict=True)
        return [value if is_there else None for value, is_there in pairs]

    return step


def by_offset(is_latest: bool) -> Step:
    """The last or the first value that is not null."""

    def step(groups: Groups, given: list[Column], states: Joined) -> Joined | None:
        there = np.flatnonzero(~given[0].is_null)
        places = np.full(groups.count, -1, np.int64)
        ids = groups.ids[there]
        if is_latest:
            places[ids] = there  # the last one of a group stays
        else:
            places[ids[::-1]] = there[::-1]
        wanted = np.flatnonzero(places >= 0)
        values = given[0].take(places[wanted]).items
        found = list(states)
        for group, value in zip(wanted.tolist(), values, strict=True):
            if is_latest or not found[group]:
                found[group] = [value]
        return found

    return step


def count_shape(aggregates: SqlAggregates) -> Shape | None:
    if not aggregates.is_count:
        return None
    names = [aggregates.calls[0].field]
    return lambda numbers: Fields(names, [numbers], len(numbers), np.zeros(len(numbers), np.bool_))


register_aggregate_form(SqlAggregates, ColumnAggregates, reasons_of, count_shape)
