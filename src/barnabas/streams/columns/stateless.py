"""Sources, sinks and stateless steps over columns.

Expressions run over arrays, functions in Python over the values of the batch, one step after the other. Does
not know: state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.plans import nodes as n
from barnabas.plans.expressions import Expression
from barnabas.plans.interpreter.records import Failure
from barnabas.streams.columns.column import Column, NotColumnar, Rows
from barnabas.streams.columns.expressions import compile_column, truths
from barnabas.streams.columns.formats import Bad, encode, encode_keys, read
from barnabas.streams.columns.task import ColumnTask, Results, Step, Written, builds

Compute = Callable[[Rows], Column]


def of_key_and_value(function: Any) -> Compute:
    """A function of key and value over all rows."""
    if isinstance(function, Expression):
        return compile_column(function)
    return lambda rows: Column(items=list(map(function, rows.key_items, rows.values.items)))


def of_value(function: Any, takes_key: bool) -> Compute:
    if isinstance(function, Expression) or takes_key:
        return of_key_and_value(function)
    return lambda rows: Column(items=list(map(function, rows.values.items)))


def joiner(function: Any, takes_key: bool) -> Compute:
    """A function of key, left value and right value."""
    if isinstance(function, Expression):
        return compile_column(function)

    def join(rows: Rows) -> Column:
        assert rows.right is not None
        given = (rows.values.items, rows.right.items)
        return Column(items=list(map(function, *((rows.key_items, *given) if takes_key else given))))

    return join


@builds(n.Source)
def source(task: ColumnTask, node: n.Source) -> Step:
    if node.carries_changes:
        raise NotColumnar("changes of a table")
    if node.pattern is not None or len(node.topics) > 1:
        raise NotColumnar("several topics may have several schemas")
    [topic] = node.topics

    def run(rows: Rows) -> Results:
        keys, bad_keys = read(node.key_serde, rows.keys.array, topic, True)
        values, bad = read(node.value_serde, rows.values.array, topic, False)
        read_rows = replace(rows, keys=keys, values=values)
        bad |= bad_keys  # the key is read first
        if bad:
            _judge(task, node.name, topic, rows, bad)
            is_good = np.ones(len(rows), np.bool_)
            is_good[list(bad)] = False
            read_rows = read_rows.where(is_good)
        rows = _stamped(task, node, read_rows)
        negative = rows.times < 0
        if negative.any():
            task.task.dropped["negative timestamp"] += int(negative.sum())
            rows = rows.where(~negative)
        if len(rows):
            task.task.stream_time = max(task.task.stream_time, int(rows.times.max()))
        return rows

    return run


def _judge(task: ColumnTask, name: str, topic: str, rows: Rows, bad: Bad) -> None:
    """Ask the task's handler about records that cannot be read, each at its place."""
    judge, handler, origins = task.task.judge, task.task.handlers.deserialization, task.origins

    def judged(order: int, error: Exception) -> None:
        judge(Failure("deserialization", name, topic, origins.record(order), error), handler)

    for place, error in bad.items():
        order = int(rows.order[place])
        origins.defer(order, -1, partial(judged, order, error))


def _stamped(task: ColumnTask, node: n.Source, rows: Rows) -> Rows:
    """Rows with the times of the extractor. What it raises sends the batch to the interpreter."""
    extract = node.timestamp_extractor
    if extract is None or not len(rows):
        return rows
    newest, times = task.task.stream_time, []
    given = zip(rows.keys.items, rows.values.items, rows.times.tolist(), rows.order.tolist(), strict=True)
    for key, value, time, order in given:
        record = task.origins.record(order)._replace(key=key, value=value, timestamp=time)
        times.append(extract(record, newest))
        newest = max(newest, times[-1])
    return replace(rows, times=np.array(times, np.int64))


@builds(n.Sink)
def sink(task: ColumnTask, node: n.Sink) -> Step:
    if node.partitioner is not None or node.carries_changes or not isinstance(node.topic, str):
        raise NotColumnar("a partitioner, changes of a table or a topic by record")
    topic: str = node.topic

    def run(rows: Rows) -> Results:
        keys = encode_keys(node.key_serde, rows, topic)
        values = encode(node.value_serde, rows.values, topic, False)
        task.written.append(Written(topic, keys, values, rows.times, rows.order, rows.headers))
        return None

    return run


@builds(n.Filter)
def filter_(task: ColumnTask, node: n.Filter) -> Step:
    passes = of_key_and_value(node.predicate) if node.vectorised is None else vectorised(node)

    def run(rows: Rows) -> Results:
        holds = truths(passes(rows))
        return rows.where(~holds if node.is_negated else holds)

    return run


@builds(n.Map)
def map_(task: ColumnTask, node: n.Map) -> Step:
    function = node.function
    if isinstance(function, tuple):
        key_of, value_of = (compile_column(each) for each in function)

        def both(rows: Rows) -> Results:
            keys = key_of(rows)  # first, as the interpreter does
            return rows.with_values(value_of(rows)).with_keys(keys)

        return both

    def run(rows: Rows) -> Results:
        pairs = list(map(function, rows.key_items, rows.values.items))
        keys, values = (list(each) for each in zip(*pairs, strict=True))
        return rows.with_keys(Column(items=keys)).with_values(Column(items=values))

    return run


@builds(n.FlatMap)
def flat_map(task: ColumnTask, node: n.FlatMap) -> Step:
    def run(rows: Rows) -> Results:
        found = [list(each) for each in map(node.function, rows.key_items, rows.values.items)]
        rows = rows.take(repeats([len(each) for each in found]))
        pairs = [pair for each in found for pair in each]
        keys, values = [key for key, _ in pairs], [value for _, value in pairs]
        return rows.with_keys(Column(items=keys)).with_values(Column(items=values))

    return run


@builds(n.SelectKey)
def select_key(task: ColumnTask, node: n.SelectKey) -> Step:
    key_of = of_key_and_value(node.function)
    return lambda rows: rows.with_keys(key_of(rows))


@builds(n.MapValues)
def map_values(task: ColumnTask, node: n.MapValues) -> Step:
    if node.vectorised is not None:
        values = vectorised(node)
        return lambda rows: rows.with_values(values(rows))
    value_of = of_value(node.function, node.takes_key)
    return lambda rows: rows.with_values(value_of(rows))


def vectorised(node: n.MapValues | n.Filter) -> Callable[[Rows], Column]:
    """A function of the user over the values of a batch."""
    function: Any = node.function if isinstance(node, n.MapValues) else node.predicate
    if node.vectorised == "pandas":
        import pandas  # type: ignore[import-untyped]

        def of_values(rows: Rows) -> Column:
            return Column(items=function(pandas.Series(rows.values.items)).tolist())
    else:

        def of_values(rows: Rows) -> Column:
            found = function(rows.values.array)
            return Column(found if isinstance(found, pa.Array) else found.combine_chunks())

    def run(rows: Rows) -> Column:
        found = of_values(rows)
        if len(found) != len(rows):
            raise ValueError(f"{node.name}: the function gave {len(found)} values for {len(rows)}")
        return found

    return run


@builds(n.FlatMapValues)
def flat_map_values(task: ColumnTask, node: n.FlatMapValues) -> Step:
    values_of = of_value(node.function, node.takes_key)

    def run(rows: Rows) -> Results:
        found = values_of(rows)
        if found.is_array and pa.types.is_list(found.array.type):
            sizes = np.diff(found.array.offsets.to_numpy())
            if found.array.null_count:
                sizes[found.is_null] = 0
            values = Column(found.array.flatten())
        else:
            lists = [list(each or ()) for each in found.items]
            sizes = [len(each) for each in lists]
            values = Column(items=[value for each in lists for value in each])
        return rows.take(repeats(sizes)).with_values(values)

    return run


def repeats(sizes: Any) -> Any:
    """The place of each row as often as it is repeated."""
    return np.repeat(np.arange(len(sizes)), sizes)


@builds(n.Restamp)
def restamp(task: ColumnTask, node: n.Restamp) -> Step:
    time_of = of_key_and_value(node.function)

    def run(rows: Rows) -> Results:
        there = np.flatnonzero(~rows.values.is_null)
        times: list[Any] = rows.times.tolist()
        for place, time in zip(there.tolist(), time_of(rows.take(there)).items, strict=True):
            times[place] = -1 if time is None else time
        restamped = replace(rows, times=np.array(times, np.int64))
        negative = restamped.times < 0
        task.task.dropped["no timestamp"] += int(negative.sum())
        return restamped.where(~negative)

    return run


@builds(n.Peek)
def peek(task: ColumnTask, node: n.Peek) -> Step:
    def run(rows: Rows) -> Results:
        _call_all(node.function, rows)
        return rows

    return run


@builds(n.Foreach)
def foreach(task: ColumnTask, node: n.Foreach) -> Step:
    return lambda rows: _call_all(node.function, rows)


def _call_all(function: Any, rows: Rows) -> None:
    for key, value in zip(rows.key_items, rows.values.items, strict=True):
        function(key, value)


@builds(n.Branch)
def branch(task: ColumnTask, node: n.Branch) -> Step:
    predicates = [of_key_and_value(each) for each in node.predicates]

    def run(rows: Rows) -> Results:
        found: dict[str, Rows] = {}
        for passes, child in zip(predicates, node.children, strict=False):
            if not len(rows):
                return found
            holds = truths(passes(rows))
            found[child] = rows.where(holds)
            rows = rows.where(~holds)
        if len(node.children) > len(predicates):
            found[node.children[-1]] = rows
        return found

    return run


@builds(n.PassThrough)
def pass_through(task: ColumnTask, node: n.PassThrough) -> Step:
    return lambda rows: rows


@builds(n.TableToStream)
def table_to_stream(task: ColumnTask, node: n.TableToStream) -> Step:
    return lambda rows: rows
