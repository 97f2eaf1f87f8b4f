"""Suppress: changes wait until their window closes, or until a time limit.

A full buffer, by records or by bytes, emits the oldest change early, or stops the task where it is strict.
The number of bytes is kept from batch to batch, and counted again where it was lost. Does not know: windows'
kinds.
"""

from __future__ import annotations

from typing import Any

from barnabas.plans import nodes as n
from barnabas.plans.interpreter.records import Change, TaskError
from barnabas.plans.interpreter.state.buffers import BufferState
from barnabas.plans.interpreter.task import Process, Task, builds


@builds(n.Suppress)
def suppress(task: Task, node: n.Suppress, forward: Process) -> Process:
    buffer, write, rules = task.state(node.buffer), task.key_writer(node.buffer), node.suppression
    clock, size_name = f"{node.name} time", f"{node.name} bytes"
    measures = rules.bytes_max is not None

    def size() -> int:
        """The bytes that wait."""
        found = task.numbers.get(size_name)
        if found is None:
            found = task.numbers[size_name] = sum(buffer.size(data) for _, data in buffer.ordered())
        return found

    def remove(time: int, data: bytes) -> None:
        if measures:
            task.numbers[size_name] = size() - buffer.size(data)
        buffer.remove(time, data)

    def put(time: int, data: bytes, payload: Any) -> None:
        if measures:
            before = size() - buffer.size(data)
            buffer.put(time, data, payload)
            task.numbers[size_name] = before + buffer.size(data)
        else:
            buffer.put(time, data, payload)

    def is_full() -> bool:
        if rules.records_max is not None and len(buffer) > rules.records_max:
            return True
        return rules.bytes_max is not None and size() > rules.bytes_max

    def emit(time: int, data: bytes) -> None:
        _, key, change, timestamp, headers = buffer.get(data)
        remove(time, data)
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
                remove(first, data)
        else:
            put(first, data, (first, key, Change(change.new, old), timestamp, task.headers))
        for due, each in buffer.due(stream_time - wait):
            emit(due, each)
        while is_full():
            if rules.is_strict:
                raise TaskError(f"{node.name}: {full_text(buffer, rules, size() if measures else None)}")
            oldest = buffer.first()
            assert oldest is not None
            emit(*oldest)

    return process


def full_text(buffer: BufferState, rules: n.Suppression, size: int | None) -> str:
    parts = []
    if rules.records_max is not None:
        parts.append(f"{len(buffer)} of at most {rules.records_max} records")
    if size is not None:
        parts.append(f"{size} of at most {rules.bytes_max} bytes")
    return f"{' and '.join(parts)} wait; the buffer is strict"
