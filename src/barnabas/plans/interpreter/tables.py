"""Tables: upserts become changes with old and new values; filters, mapped values, and tables back to streams.

A table without a store computes a row from the table before it when a join asks. Does not know: joins,
groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.plans import nodes as n
from barnabas.plans.interpreter.functions import (
    joiner_function,
    key_value_function,
    pair_function,
    value_function,
)
from barnabas.plans.interpreter.records import Change
from barnabas.plans.interpreter.state.tables import VersionedState
from barnabas.plans.interpreter.task import Process, Task, builds

Getter = Callable[..., tuple[Any, int] | None]  # of a key; of a versioned table also as of a time


def sends_old_values(task: Task, name: str) -> bool:
    """Whether a node below needs the old values of this table."""
    for node in task.subtopology.nodes:
        if name not in node.parents:
            continue
        if isinstance(node, n.TableRepartition | n.SubscriptionSend):
            return True
        if isinstance(node, n.TableFilter) and node.is_quiet:
            return True
        if isinstance(node, n.TableTableJoin) and (
            node.kind == "outer" or (node.kind == "left" and node.is_left)
        ):
            return True
        passes_on = n.TableFilter | n.TableMapValues | n.Suppress | n.TableTableJoin | n.TableJoinMerge
        if isinstance(node, passes_on | n.TablePassThrough) and sends_old_values(task, node.name):
            return True
    return False


def is_versioned(task: Task, name: str) -> bool:
    """Whether rows of a table can be looked up as of a time: it, or the table that it is computed from, has a
    store with versions."""
    node = task.by_name[name]
    store = getattr(node, "store", None)
    if store is not None:
        return isinstance(task.state(store), VersionedState)
    return isinstance(node, n.TableFilter | n.TableMapValues) and is_versioned(task, node.parents[0])


def getter(task: Task, name: str) -> Getter:
    """How a row of a table is looked up: in its store, or computed from the table before it."""
    node = task.by_name[name]
    store = getattr(node, "store", None)
    if store is not None:
        state, write = task.state(store), task.key_writer(store)
        if isinstance(state, VersionedState):
            return lambda key, *time: state.as_of(write(key), *time) if time else state.get(write(key))
        return lambda key: state.get(write(key))
    if isinstance(node, n.TableFilter):
        before, passes = getter(task, node.parents[0]), key_value_function(task, node.predicate)

        def filtered(key: Any, *time: int) -> tuple[Any, int] | None:
            row = before(key, *time)
            if row is None or bool(passes(key, row[0], row[1])) is node.is_negated:
                return None
            return row

        return filtered
    if isinstance(node, n.TableMapValues):
        before = getter(task, node.parents[0])
        function = value_function(task, node.function, node.takes_key)

        def mapped(key: Any, *time: int) -> tuple[Any, int] | None:
            row = before(key, *time)
            return None if row is None else (function(key, row[0], row[1]), row[1])

        return mapped
    if isinstance(node, n.TableJoinMerge):
        return _joined(task, node)
    return getter(task, node.parents[0])


def _joined(task: Task, node: n.TableJoinMerge) -> Getter:
    """A row of a join, computed from the rows of both tables."""
    side = task.by_name[node.sides[0]]
    assert isinstance(side, n.TableTableJoin)
    left, right = getter(task, side.this), getter(task, side.other)
    join, kind = joiner_function(task, side.joiner, side.takes_key), side.kind

    def joined(key: Any) -> tuple[Any, int] | None:
        one, two = left(key), right(key)
        if (one is None and (two is None or kind != "outer")) or (two is None and kind == "inner"):
            return None
        newest = max(row[1] for row in (one, two) if row is not None)
        a, b = None if one is None else one[0], None if two is None else two[0]
        return join(key, a, b, newest), newest

    return joined


@builds(n.TableSource)
def table_source(task: Task, node: n.TableSource, forward: Process) -> Process:
    if node.store is None:

        def pass_on(key: Any, value: Any, timestamp: int) -> None:
            if key is None:
                task.drop("null key")
            else:
                forward(key, Change(value, None), timestamp)

        return pass_on
    state, write = task.state(node.store), task.key_writer(node.store)
    if isinstance(state, VersionedState):
        return _versioned(task, state, write, forward)
    sends_old = sends_old_values(task, node.name)

    def process(key: Any, value: Any, timestamp: int) -> None:
        if key is None:
            task.drop("null key")
            return
        data = write(key)
        old = state.get(data) if sends_old else None
        state.put(data, value, timestamp)
        forward(key, Change(value, None if old is None else old[0]), timestamp)

    return process


def _versioned(task: Task, state: VersionedState, write: Any, forward: Process) -> Process:
    def process(key: Any, value: Any, timestamp: int) -> None:
        if key is None:
            task.drop("null key")
            return
        data = write(key)
        newest = state.newest_time(data)
        old = state.as_of(data, timestamp)
        if not state.put(data, value, timestamp):
            task.drop("expired")
            return
        is_latest = newest is None or timestamp >= newest
        forward(key, Change(value, None if old is None else old[0], is_latest), timestamp)

    return process


@builds(n.TableFilter)
def table_filter(task: Task, node: n.TableFilter, forward: Process) -> Process:
    passes, wanted = key_value_function(task, node.predicate), not node.is_negated
    keep = keeper(task, node)
    sends_old = node.is_quiet or sends_old_values(task, node.name)

    def kept(key: Any, value: Any, timestamp: int) -> Any:
        return value if value is not None and bool(passes(key, value, timestamp)) is wanted else None

    def process(key: Any, change: Change, timestamp: int) -> None:
        task.node_name = node.name
        new = kept(key, change.new, timestamp)
        old = kept(key, change.old, timestamp) if sends_old else None
        if sends_old and new is None and old is None:
            return  # a row that never passed needs no tombstone
        keep(key, new, timestamp)
        forward(key, Change(new, old, change.is_latest), timestamp)

    return process


@builds(n.TableMapValues)
def table_map_values(task: Task, node: n.TableMapValues, forward: Process) -> Process:
    function = value_function(task, node.function, node.takes_key)
    keep = keeper(task, node)
    sends_old = sends_old_values(task, node.name)

    def mapped(key: Any, value: Any, timestamp: int) -> Any:
        return None if value is None else function(key, value, timestamp)

    def process(key: Any, change: Change, timestamp: int) -> None:
        task.node_name = node.name
        new = mapped(key, change.new, timestamp)
        old = mapped(key, change.old, timestamp) if sends_old else None
        keep(key, new, timestamp)
        forward(key, Change(new, old, change.is_latest), timestamp)

    return process


def keeper(task: Task, node: n.TableNode) -> Process:
    """A function that puts rows into the store of a table, if it has one."""
    if node.store is None:
        return lambda key, value, timestamp: None
    state, write = task.state(node.store), task.key_writer(node.store)
    return lambda key, value, timestamp: state.put(write(key), value, timestamp)


@builds(n.TableToStream)
def table_to_stream(task: Task, node: n.TableToStream, forward: Process) -> Process:
    return lambda key, change, timestamp: forward(key, change.new, timestamp)


@builds(n.TablePassThrough)
def table_pass_through(task: Task, node: n.TablePassThrough, forward: Process) -> Process:
    return forward


@builds(n.TableRepartition)
def table_repartition(task: Task, node: n.TableRepartition, forward: Process) -> Process:
    function = pair_function(task, node.function)

    def process(key: Any, change: Change, timestamp: int) -> None:
        task.node_name = node.name
        if not change.is_latest:
            return  # a versioned table's older update changes no aggregate
        new_key, new = (None, None) if change.new is None else function(key, change.new, timestamp)
        old_key, old = (None, None) if change.old is None else function(key, change.old, timestamp)
        if old_key is not None and old_key == new_key and old is not None and new is not None:
            forward(new_key, Change(new, old), timestamp)
            return
        if old_key is not None and old is not None:
            forward(old_key, Change(None, old), timestamp)
        if new_key is not None and new is not None:
            forward(new_key, Change(new, None), timestamp)

    return process
