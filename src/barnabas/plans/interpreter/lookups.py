"""Joins that look up a table for each record of a stream: tables and global tables.

A table is taken as it is now, by arrival; a versioned one as it was at the time of the record. Does not
know: joins of two tables.
"""

from __future__ import annotations

from typing import Any

from barnabas.plans import nodes as n
from barnabas.plans.interpreter.functions import joiner_function, key_value_function
from barnabas.plans.interpreter.tables import getter, is_versioned
from barnabas.plans.interpreter.task import Process, Task, builds


@builds(n.StreamTableJoin)
def stream_table_join(task: Task, node: n.StreamTableJoin, forward: Process) -> Process:
    look_up, join = getter(task, node.table), joiner_function(task, node.joiner, node.takes_key)
    is_inner, as_of = node.kind == "inner", is_versioned(task, node.table)

    def emit(key: Any, value: Any, timestamp: int) -> None:
        row = None if key is None else look_up(key, timestamp) if as_of else look_up(key)
        if row is not None or not is_inner:
            joined = join(key, value, None if row is None else row[0], timestamp)
            forward(key, joined, timestamp)

    delayed = emit if node.buffer is None else _delayed(task, node, emit)

    def process(key: Any, value: Any, timestamp: int) -> None:
        task.node_name = node.name
        if value is None or (key is None and is_inner):
            task.drop("null key or value")
            return
        delayed(key, value, timestamp)

    return process


def _delayed(task: Task, node: n.StreamTableJoin, emit: Process) -> Process:
    """Records wait until stream time has passed theirs by the grace; late ones do not wait."""
    assert node.buffer is not None
    buffer, write = task.state(node.buffer), task.key_writer(node.buffer)
    grace = node.grace_ms or 0
    clock, count = f"{node.name} time", f"{node.name} count"

    def process(key: Any, value: Any, timestamp: int) -> None:
        if timestamp < task.numbers.get(clock, -1) - grace:
            emit(key, value, timestamp)
        else:
            task.numbers[clock] = max(task.numbers.get(clock, -1), timestamp)
            number = task.numbers[count] = task.numbers.get(count, 0) + 1
            data = b"" if key is None else write(key)
            entry = timestamp.to_bytes(8, "big") + data + number.to_bytes(8, "big")
            buffer.put(timestamp, entry, (key, value, task.headers))
        outer = task.headers
        for time, entry in buffer.due(task.numbers[clock] - grace):
            waited, record, task.headers = buffer.get(entry)
            buffer.remove(time, entry)
            emit(waited, record, time)
        task.headers = outer

    return process


@builds(n.StreamGlobalJoin)
def stream_global_join(task: Task, node: n.StreamGlobalJoin, forward: Process) -> Process:
    state, write = task.state(node.table_store), task.key_writer(node.table_store)
    select = key_value_function(task, node.key_selector)
    join, is_inner = joiner_function(task, node.joiner, node.takes_key), node.kind == "inner"

    def process(key: Any, value: Any, timestamp: int) -> None:
        task.node_name = node.name
        if value is None:
            task.drop("null value")
            return
        wanted = select(key, value, timestamp)
        if wanted is None and is_inner:
            task.drop("null join key")
            return
        row = None if wanted is None else state.get(write(wanted))
        if row is not None or not is_inner:
            forward(key, join(key, value, None if row is None else row[0], timestamp), timestamp)

    return process
