"""Aggregations over columns: groups of a batch, whose state is read and written once.

Only the last result of a key (and window) in a batch goes on, as from Kafka Streams' cache. Counts need no
Python for a record; other functions are called record by record, on states that are at hand. Does not know:
sessions, sliding windows, final results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from barnabas.plans import nodes as n
from barnabas.plans.aggregate_functions import Functions, functions_of
from barnabas.plans.aggregates import AnyAggregate, BuiltIns
from barnabas.plans.interpreter.aggregations import own
from barnabas.plans.interpreter.state.tables import TableState
from barnabas.plans.interpreter.state.windows import WindowState
from barnabas.plans.windows import TimeWindows
from barnabas.streams.columns import kernel
from barnabas.streams.columns.column import Column, NotColumnar, Rows
from barnabas.streams.columns.expressions import cursor_of, scopes_of
from barnabas.streams.columns.grouping import Groups
from barnabas.streams.columns.pages import CountPages
from barnabas.streams.columns.tables import column_of, key_bytes, without_nulls
from barnabas.streams.columns.task import ColumnTask, Results, Step, builds
from barnabas.streams.columns.window_pages import WindowCounts, has_counts

States = list[tuple[Any, int] | None]  # value and time of each group before the batch


class Adding(Protocol):
    """An aggregate over columns: each group's state and largest time after the batch, and results."""

    def add(self, groups: Groups, rows: Rows, before: States) -> tuple[list[Any], Any]: ...

    def results(self, states: list[Any]) -> Column: ...


Shape = Callable[[Column], Column]  # results of numbers
_ADDING: dict[type, Callable[[Any], Adding]] = {}
_REASONS: dict[type, Callable[[Any], list[str]]] = {}
_COUNTS: dict[type, Callable[[Any], Shape | None]] = {}


def register_aggregate_form(
    kind: type,
    make: Callable[[Any], Adding],
    why: Callable[[Any], list[str]],
    count: Callable[[Any], Shape | None],
) -> None:
    """Give a kind of aggregate its form over columns. `why` says which of its functions run in Python;
    `count` gives, of an aggregate that only counts records, the results of its numbers."""
    _ADDING[kind], _REASONS[kind], _COUNTS[kind] = make, why, count


def aggregate_reasons(aggregate: Any) -> list[str]:
    """Why parts of an aggregate run as Python functions."""
    why = _REASONS.get(type(aggregate))
    return [] if why is None else why(aggregate)


AT_ONCE = (n.TableToStream, n.Sink, n.Filter, n.Map, n.MapValues, n.SelectKey, n.FlatMapValues, n.FlatMap)
PASSING = (*AT_ONCE, n.PassThrough, n.Branch, n.Peek, n.TableFilter, n.TableMapValues)


def is_plain_count(aggregate: AnyAggregate) -> bool:
    if not isinstance(aggregate, BuiltIns) or not aggregate.is_bare:
        return False
    built_in = aggregate.fields[0][1]
    return built_in.name == "count" and not built_in.arguments


def count_shape(aggregate: AnyAggregate) -> Shape | None:
    """Results of the numbers of an aggregate that only counts records; None for others."""
    if is_plain_count(aggregate):
        return lambda numbers: numbers
    found = _COUNTS.get(type(aggregate))
    return None if found is None else found(aggregate)


def check_collapsing(task: ColumnTask, node: n.Node) -> None:
    """Only the last update of a key goes on: nothing below may count updates. A quiet filter needs old
    values; right below an aggregation it gets those from before the batch."""
    users = [each for each in task.task.subtopology.nodes if set(each.stores) & set(node.stores)]
    if node.stores and len(users) > 1:
        raise NotColumnar("several steps share the store")
    is_aggregation = isinstance(node, n.StreamAggregate | n.WindowAggregate)
    for each in children_of(task, node):
        if not isinstance(each, PASSING):
            raise NotColumnar(f"{each.name} below takes every update")
        if isinstance(each, n.TableFilter) and each.is_quiet and not is_aggregation:
            raise NotColumnar(f"{each.name} below needs the old values of a table")
        check_collapsing(task, each)


def children_of(task: ColumnTask, node: n.Node) -> list[n.Node]:
    return [each for each in task.task.subtopology.nodes if node.name in each.parents]


def has_quiet_filter(task: ColumnTask, node: n.Node) -> bool:
    return any(isinstance(each, n.TableFilter) and each.is_quiet for each in children_of(task, node))


def counted(groups: Groups, rows: Rows, before: States) -> tuple[list[Any], Any]:
    """The new count and the largest time of each group."""
    more = np.bincount(groups.ids, minlength=groups.count).tolist()
    counts = [count if row is None else row[0] + count for row, count in zip(before, more, strict=True)]
    newest = np.fromiter((-1 if row is None else row[1] for row in before), np.int64, groups.count)
    kernel.max_by(groups.ids, rows.times, newest)
    return counts, newest


def added(functions: Functions, groups: Groups, rows: Rows, before: States) -> tuple[list[Any], Any]:
    """Call the adder for each record, in order, on the state of its group. A state of None is deleted: the
    next record begins anew."""
    states = [None if row is None else own(row[0]) for row in before]
    newest = [-1 if row is None else row[1] for row in before]
    initial, add = functions.initial, functions.add
    cursor = cursor_of(rows)
    for row, (group, scope) in enumerate(zip(groups.ids.tolist(), scopes_of(rows), strict=True)):
        cursor.row = row
        key, value, time, _ = scope
        state = states[group]
        if state is None:
            state = initial()
            newest[group] = time
        elif time > newest[group]:
            newest[group] = time
        states[group] = add(key, value, state, (*scope, cursor))
    return states, np.array(newest, np.int64)


class OneByOne:
    """An aggregate whose functions are called for each record."""

    def __init__(self, aggregate: AnyAggregate) -> None:
        self._functions = functions_of(aggregate)
        self._counts = is_plain_count(aggregate)

    def add(self, groups: Groups, rows: Rows, before: States) -> tuple[list[Any], Any]:
        if self._counts:
            return counted(groups, rows, before)
        return added(self._functions, groups, rows, before)

    def results(self, states: list[Any]) -> Column:
        finish = self._functions.finish
        if finish is not None:
            return Column(items=[None if each is None else finish(each) for each in states])
        return column_of(states)


def adding(aggregate: AnyAggregate) -> Adding:
    make = _ADDING.get(type(aggregate))
    return OneByOne(aggregate) if make is None else make(aggregate)


def last_of_groups(groups: Groups) -> tuple[Any, Any]:
    """Groups by their last row, and these rows."""
    lasts = groups.lasts()
    order = np.argsort(lasts, kind="stable")
    return order, lasts[order]


@builds(n.StreamAggregate)
def stream_aggregate(task: ColumnTask, node: n.StreamAggregate) -> Step:
    check_collapsing(task, node)
    if node.store is None:
        raise NotColumnar("an aggregation needs a store")
    store, state = node.store, task.task.state(node.store)
    if not isinstance(state, TableState):
        raise NotColumnar("a store of another kind")
    aggregate, needs_old = adding(node.aggregate), has_quiet_filter(task, node)
    shape = None if needs_old else count_shape(node.aggregate)
    counts = None if shape is None else CountPages.of(task.task, state)

    def run(rows: Rows) -> Results:
        rows = without_nulls(task, rows)
        if not len(rows):
            return None
        data = key_bytes(task, store, rows.keys)
        groups = Groups(data)
        order, lasts = last_of_groups(groups)
        distinct, old = data.take(pa.array(groups.firsts)), None
        if counts is not None and shape is not None:
            values, times = counts.add(task, distinct, groups, rows.times)
            found = shape(Column(pa.array(values[order])))
        else:
            keys = distinct.to_pylist()
            before: States = state.get_many(keys)
            states, times = aggregate.add(groups, rows, before)

            def write() -> None:
                for key, value, time in zip(keys, states, times.tolist(), strict=True):
                    state.put(key, value, time)

            task.pending.append(write)
            found = aggregate.results([states[group] for group in order.tolist()])
            if needs_old:
                old = olds(aggregate, before, order)
        return replace(_latest(rows, lasts, times[order], found), old=old)

    return run


def olds(aggregate: Adding, before: States, order: Any) -> Column:
    """The results from before the batch, by groups in this order."""
    rows = [before[group] for group in order.tolist()]
    return aggregate.results([None if row is None else row[0] for row in rows])


def _latest(rows: Rows, lasts: Any, times: Any, values: Column) -> Rows:
    some = rows.take(lasts)
    return replace(some, values=values, times=times)


@builds(n.WindowAggregate)
def window_aggregate(task: ColumnTask, node: n.WindowAggregate) -> Step:
    windows = node.windows
    if not isinstance(windows, TimeWindows) or node.emit != "update" or node.store is None:
        raise NotColumnar("windows by records, or final results")
    check_collapsing(task, node)
    store, state = node.store, task.task.state(node.store)
    assert isinstance(state, WindowState)
    aggregate, needs_old = adding(node.aggregate), has_quiet_filter(task, node)
    shape = count_shape(node.aggregate) if has_counts(state) and not needs_old else None
    numbers, clock = task.task.numbers, f"{node.name} time"

    def run(rows: Rows) -> Results:
        rows = without_nulls(task, rows, takes_null_values=True)
        if not len(rows):
            return None
        stream_times = np.maximum(np.maximum.accumulate(rows.times), numbers.get(clock, -1))
        numbers[clock] = int(stream_times[-1])
        places, starts = windows_of(windows, rows.times)
        on_time = starts + windows.size_ms > stream_times[places] - windows.grace_ms
        if not on_time.all():
            task.task.dropped["late"] += int((~on_time).sum())
            places, starts = places[on_time], starts[on_time]
        if not len(places):
            return None
        rows = rows.take(places)
        data = key_bytes(task, store, rows.keys)
        groups = Groups(data, starts)
        order, lasts = last_of_groups(groups)
        old = None
        if shape is not None:
            counts = WindowCounts(task, state, data, starts, rows.times, groups)
            task.pending.append(counts.write)
            times, found = counts.times, shape(Column(pa.array(counts.counts[order])))
        else:
            keys = data.take(pa.array(groups.firsts)).to_pylist()
            first_starts = starts[groups.firsts].tolist()
            before: States = state.get_many(keys, first_starts)
            states, times = aggregate.add(groups, rows, before)

            def write() -> None:
                for key, start, value, time in zip(keys, first_starts, states, times.tolist(), strict=True):
                    state.put(key, start, value, time)

            task.pending.append(write)
            found = aggregate.results([states[group] for group in order.tolist()])
            if needs_old:
                old = olds(aggregate, before, order)
        latest = replace(_latest(rows, lasts, times[order], found), old=old)
        return replace(latest, starts=starts[lasts], window_ms=windows.size_ms)

    return run


def windows_of(windows: TimeWindows, times: Any) -> tuple[Any, Any]:
    """The windows of each record: the record's place, and the window's start. Never one before the epoch."""
    size, advance = windows.size_ms, windows.advance_ms
    newest = times // advance * advance
    if size == advance:
        return np.arange(len(times)), newest
    most = -(-size // advance)
    starts = newest[:, None] - np.arange(most - 1, -1, -1, dtype=np.int64)[None, :] * advance
    fits = (starts >= 0) & (starts + size > times[:, None])
    places = np.broadcast_to(np.arange(len(times))[:, None], starts.shape)
    return places[fits], starts[fits]
