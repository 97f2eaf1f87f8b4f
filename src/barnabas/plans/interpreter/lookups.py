"""Joins that look up a table for each record of a stream: tables and global tables.

The table is taken as it is now, by arrival. Does not know: joins of two tables.
"""

from __future__ import annotations

from typing import Any

from barnabas.plans import nodes as n
from barnabas.plans.interpreter.functions import joiner_function, key_value_function
from barnabas.plans.interpreter.tables import getter
from barnabas.plans.interpreter.task import Process, Task, builds


@builds(n.StreamTableJoin)
def stream_table_join(task: Task, node: n.StreamTableJoin, forward: Process) -> Process:
    look_up, join = getter(task, node.table), joiner_function(task, node.joiner, node.takes_key)
    is_inner = node.kind == "inner"

    def process(key: Any, value: Any, timestamp: int) -> None:
        task.node_name = node.name
        if value is None or (key is None and is_inner):
            task.drop("null key or value")
            return
        row = None if key is None else look_up(key)
        if row is not None or not is_inner:
            joined = join(key, value, None if row is None else row[0], timestamp)
            forward(key, joined, timestamp)

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
