"""Joins of two tables by key: inner, left, outer.

A change of either side gives a change of the result; a tombstone comes where there was a row, or where the
other side has one. The result's time is the larger one of both rows. Does not know: joins by a foreign key.
"""

from __future__ import annotations

from typing import Any

from barnabas.plans import nodes as n
from barnabas.plans.interpreter.functions import joiner_function
from barnabas.plans.interpreter.records import Change
from barnabas.plans.interpreter.tables import getter, keeper
from barnabas.plans.interpreter.task import Process, Task, builds


def has_row(kind: str, left: Any, right: Any) -> bool:
    """Whether a join of these two values has a row."""
    if kind == "inner":
        return left is not None and right is not None
    return left is not None or (kind == "outer" and right is not None)


@builds(n.TableTableJoin)
def table_table_join(task: Task, node: n.TableTableJoin, forward: Process) -> Process:
    look_up, join = getter(task, node.other), joiner_function(task, node.joiner, node.takes_key)
    kind, is_left = node.kind, node.is_left

    def process(key: Any, change: Change, timestamp: int) -> None:
        if key is None:
            task.drop("null key")
            return
        if not change.is_latest:
            return
        task.node_name = node.name
        row = look_up(key)
        other = None if row is None else row[0]
        newest = timestamp if row is None else max(timestamp, row[1])

        def joined(value: Any) -> tuple[bool, Any]:
            left, right = (value, other) if is_left else (other, value)
            there = has_row(kind, left, right)
            return there, join(key, left, right, newest) if there else None

        is_there, new = joined(change.new)
        was_there, old = joined(change.old)
        if is_there or was_there or other is not None:
            forward(key, Change(new, old), newest)

    return process


@builds(n.TableJoinMerge)
def table_join_merge(task: Task, node: n.TableJoinMerge, forward: Process) -> Process:
    keep = keeper(task, node)

    def process(key: Any, change: Change, timestamp: int) -> None:
        keep(key, change.new, timestamp)
        forward(key, change, timestamp)

    return process
