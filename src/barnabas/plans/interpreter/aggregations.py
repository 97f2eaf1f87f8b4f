"""Aggregations of grouped streams and tables without windows.

Null keys and null values are dropped. An aggregate of null deletes the key. Does not know: windows.
"""

from __future__ import annotations

from typing import Any

from barnabas.plans import nodes as n
from barnabas.plans.aggregate_functions import functions_of
from barnabas.plans.interpreter.records import Change, TaskError
from barnabas.plans.interpreter.task import Process, Task, builds

_IMMUTABLE = (int, float, str, bytes, bool, type(None))


def own(value: Any) -> Any:
    """A copy that a function of the user may change in place: results that were forwarded must stay as they
    were."""
    if isinstance(value, _IMMUTABLE):
        return value
    if type(value) is dict:
        return {key: own(each) for key, each in value.items()}
    if type(value) is list:
        return [own(each) for each in value]
    if type(value) is set:
        return set(value)
    if type(value) is tuple:
        return value
    from copy import deepcopy

    return deepcopy(value)


@builds(n.StreamAggregate)
def stream_aggregate(task: Task, node: n.StreamAggregate, forward: Process) -> Process:
    if node.store is None:
        raise TaskError(f"{node.name}: an aggregation needs a store")
    state, write = task.state(node.store), task.key_writer(node.store)
    functions = functions_of(node.aggregate)
    initial, add, finish = functions.initial, functions.add, functions.finish

    def process(key: Any, value: Any, timestamp: int) -> None:
        if key is None or value is None:
            task.drop("null key or value")
            return
        task.node_name = node.name
        data = write(key)
        row = state.get(data)
        if row is None:
            old, newest = None, timestamp
            aggregate = initial()
        else:
            old = row[0]
            newest = row[1] if row[1] > timestamp else timestamp
            aggregate = own(old)
        new = add(key, value, aggregate, (key, value, timestamp, None, task))
        state.put(data, new, newest)
        if finish is not None:
            new = None if new is None else finish(new)
            old = None if old is None else finish(old)
        forward(key, Change(new, old), newest)

    return process


@builds(n.TableAggregate)
def table_aggregate(task: Task, node: n.TableAggregate, forward: Process) -> Process:
    if node.store is None:
        raise TaskError(f"{node.name}: an aggregation needs a store")
    state, write = task.state(node.store), task.key_writer(node.store)
    functions = functions_of(node.aggregate)
    subtract = functions.subtract
    if subtract is None:
        raise TaskError(f"{node.name}: an aggregation of a table needs a subtractor")

    def process(key: Any, change: Change, timestamp: int) -> None:
        if key is None:
            task.drop("null key")
            return
        task.node_name = node.name
        data = write(key)
        row = state.get(data)
        old = None if row is None else row[0]
        newest = timestamp if row is None else max(row[1], timestamp)
        aggregate = own(old)
        if change.old is not None and (aggregate is not None or not functions.is_reduce):
            start = functions.initial() if aggregate is None else aggregate
            aggregate = subtract(key, change.old, start, (key, change.old, timestamp, None, task))
        if change.new is not None:
            start = functions.initial() if aggregate is None else aggregate
            aggregate = functions.add(key, change.new, start, (key, change.new, timestamp, None, task))
        state.put(data, aggregate, newest)
        if functions.finish is not None:
            aggregate = None if aggregate is None else functions.finish(aggregate)
            old = None if old is None else functions.finish(old)
        forward(key, Change(aggregate, old), newest)

    return process
