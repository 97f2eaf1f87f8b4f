"""Stateless operators of streams.

Null keys and values reach the functions. Does not know: state.
"""

from __future__ import annotations

from typing import Any

from barnabas.plans import nodes as n
from barnabas.plans.interpreter.functions import key_value_function, pair_function, value_function
from barnabas.plans.interpreter.task import Process, Task, builds


@builds(n.Filter)
def filter_(task: Task, node: n.Filter, forward: Process) -> Process:
    passes, wanted = key_value_function(task, node.predicate), not node.is_negated
    if node.vectorised is not None:
        from barnabas.plans.interpreter.vectors import one_by_one

        passes = one_by_one(node.predicate, node.vectorised)

    def process(key: Any, value: Any, timestamp: int) -> None:
        task.node_name = node.name
        if bool(passes(key, value, timestamp)) is wanted:
            forward(key, value, timestamp)

    return process


@builds(n.Map)
def map_(task: Task, node: n.Map, forward: Process) -> Process:
    function = pair_function(task, node.function)

    def process(key: Any, value: Any, timestamp: int) -> None:
        task.node_name = node.name
        try:
            new_key, new_value = function(key, value, timestamp)
        except TypeError as error:
            raise TypeError(f"map needs a function that gives a pair (key, value): {error}") from error
        forward(new_key, new_value, timestamp)

    return process


@builds(n.FlatMap)
def flat_map(task: Task, node: n.FlatMap, forward: Process) -> Process:
    def process(key: Any, value: Any, timestamp: int) -> None:
        task.node_name = node.name
        for new_key, new_value in node.function(key, value):
            forward(new_key, new_value, timestamp)

    return process


@builds(n.SelectKey)
def select_key(task: Task, node: n.SelectKey, forward: Process) -> Process:
    function = key_value_function(task, node.function)

    def process(key: Any, value: Any, timestamp: int) -> None:
        task.node_name = node.name
        forward(function(key, value, timestamp), value, timestamp)

    return process


@builds(n.MapValues)
def map_values(task: Task, node: n.MapValues, forward: Process) -> Process:
    function = value_function(task, node.function, node.takes_key)
    if node.vectorised is not None:
        from barnabas.plans.interpreter.vectors import one_by_one

        function = one_by_one(node.function, node.vectorised)

    def process(key: Any, value: Any, timestamp: int) -> None:
        task.node_name = node.name
        forward(key, function(key, value, timestamp), timestamp)

    return process


@builds(n.FlatMapValues)
def flat_map_values(task: Task, node: n.FlatMapValues, forward: Process) -> Process:
    function = value_function(task, node.function, node.takes_key)

    def process(key: Any, value: Any, timestamp: int) -> None:
        task.node_name = node.name
        for each in function(key, value, timestamp) or ():
            forward(key, each, timestamp)

    return process


@builds(n.Restamp)
def restamp(task: Task, node: n.Restamp, forward: Process) -> Process:
    function = key_value_function(task, node.function)

    def process(key: Any, value: Any, timestamp: int) -> None:
        task.node_name = node.name
        time = timestamp if value is None else function(key, value, timestamp)
        if time is None or time < 0:
            task.drop("no timestamp")
            return
        forward(key, value, time)

    return process


@builds(n.Peek)
def peek(task: Task, node: n.Peek, forward: Process) -> Process:
    def process(key: Any, value: Any, timestamp: int) -> None:
        task.node_name = node.name
        node.function(key, value)
        forward(key, value, timestamp)

    return process


@builds(n.Foreach)
def foreach(task: Task, node: n.Foreach, forward: Process) -> Process:
    def process(key: Any, value: Any, timestamp: int) -> None:
        task.node_name = node.name
        node.function(key, value)

    return process


@builds(n.Branch)
def branch(task: Task, node: n.Branch, forward: Process) -> Process:
    predicates = [key_value_function(task, each) for each in node.predicates]
    children = [task.processes[name] for name in node.children]
    default = children[len(predicates)] if len(children) > len(predicates) else None

    def process(key: Any, value: Any, timestamp: int) -> None:
        task.node_name = node.name
        for passes, child in zip(predicates, children, strict=False):
            if passes(key, value, timestamp):
                child(key, value, timestamp)
                return
        if default is not None:
            default(key, value, timestamp)

    return process


@builds(n.PassThrough)
def pass_through(task: Task, node: n.PassThrough, forward: Process) -> Process:
    return forward
