"""Suppress: changes wait until their window closes, or until a time limit.

A full buffer emits the oldest change early, or stops the task where it is strict. Does not know: windows'
kinds.
"""

from __future__ import annotations

from typing import Any

from barnabas.plans import nodes as n
from barnabas.plans.interpreter.records import Change, TaskError
from barnabas.plans.interpreter.task import Process, Task, builds


@builds(n.Suppress)
def suppress(task: Task, node: n.Suppress, forward: Process) -> Process:
    buffer, write, rules = task.state(node.buffer), task.key_writer(node.buffer), node.suppression
    clock = f"{node.name} time"

    def emit(time: int, data: bytes) -> None:
        _, key, change, timestamp, headers = buffer.get(data)
        buffer.remove(time, data)
        outer, task.headers = task.headers, headers
        forward(key, change, timestamp)
        task.headers = outer

    def process(key: Any, change: Change, timestamp: int) -> None:
        task.node_name = node.name
        stream_time = task.numbers[clock] = max(task.numbers.get(clock, -1), timestamp)
        time = timestamp if rules.time_limit_ms is not None else key.end
        wait = rules.time_limit_ms if rules.time_limit_ms is not None else rules.grace_ms
        data = write(key)
        waiting = buffer.get(data)
        first = time if waiting is None else waiting[0]
        old = change.old if waiting is None else waiting[2].old
        # A window that never came out needs no tombstone.
        if change.new is None and rules.time_limit_ms is None:
            if waiting is not None:
                buffer.remove(first, data)
        else:
            buffer.put(first, data, (first, key, Change(change.new, old), timestamp, task.headers))
        for due, each in buffer.due(stream_time - wait):
            emit(due, each)
        while rules.records_max is not None and len(buffer) > rules.records_max:
            if rules.is_strict:
                raise TaskError(
                    f"{node.name}: more than {rules.records_max} records wait; the buffer is strict"
                )
            oldest = buffer.first()
            assert oldest is not None
            emit(*oldest)

    return process
