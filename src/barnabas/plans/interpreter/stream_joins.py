"""Joins of two streams in a window of time: inner, left, outer.

Each side keeps its records `before + after + grace` behind its own largest time. A record without a match
comes out when its window has passed the time of both sides. Does not know: tables.
"""

from __future__ import annotations

import struct
from typing import Any

from barnabas.plans import nodes as n
from barnabas.plans.interpreter.functions import joiner_function
from barnabas.plans.interpreter.state.buffers import BufferState
from barnabas.plans.interpreter.task import Process, Task, builds

NEVER = 1 << 62
_TIME = struct.Struct(">q")


@builds(n.JoinWindowed)
def join_windowed(task: Task, node: n.JoinWindowed, forward: Process) -> Process:
    state, write = task.state(node.store), task.key_writer(node.store)

    def process(key: Any, value: Any, timestamp: int) -> None:
        if key is not None and value is not None:
            state.put(write(key), value, timestamp)
        forward(key, value, timestamp)

    return process


@builds(n.StreamStreamJoin)
def stream_stream_join(task: Task, node: n.StreamStreamJoin, forward: Process) -> Process:
    other, write = task.state(node.other_store), task.key_writer(node.other_store)
    waiting: BufferState | None = None if node.waiting is None else task.state(node.waiting)
    join = joiner_function(task, node.joiner, node.takes_key)
    before, after, grace = node.windows.before_ms, node.windows.after_ms, node.windows.grace_ms
    is_left = node.is_left
    own_after = after if is_left else before
    goes_alone = node.kind == "outer" or (node.kind == "left" and is_left)
    waits, at_once = waiting is not None and goes_alone, node.is_eager and goes_alone
    clock, oldest_name = f"{node.shared} time", f"{node.shared} oldest"

    def pair(key: Any, from_left: bool, mine: Any, others: Any, timestamp: int) -> Any:
        return join(key, mine, others, timestamp) if from_left else join(key, others, mine, timestamp)

    def sweep(buffer: BufferState, stream_time: int) -> None:
        """Emit records whose window has passed. The last one looked at says when the next look is due."""
        task.numbers[oldest_name] = NEVER
        still_open: set[bool] = set()
        for time, entry in buffer.ordered():
            task.numbers[oldest_name] = time
            if len(still_open) == 2:
                break
            from_left = entry[8] == 1
            if time + (after if from_left else before) + grace >= stream_time:
                still_open.add(from_left)
                continue
            key, values = buffer.get(entry)
            buffer.remove(time, entry)
            for value in values:
                forward(key, pair(key, from_left, value, None, time), time)

    def process(key: Any, value: Any, timestamp: int) -> None:
        task.node_name = node.name
        stream_time = task.numbers[clock] = max(task.numbers.get(clock, -1), timestamp)
        if key is None or value is None:
            if (waits or at_once) and value is not None:
                forward(None, pair(None, is_left, value, None, timestamp), timestamp)
            else:
                task.drop("null key or value")
            return
        if waiting is not None and timestamp == stream_time:
            oldest = task.numbers.get(oldest_name, NEVER)
            if oldest + own_after + grace < stream_time:
                sweep(waiting, stream_time)
        data = write(key)
        low, high = (
            (timestamp - before, timestamp + after) if is_left else (timestamp - after, timestamp + before)
        )
        found = other.of(data, low, high)
        for time, _, others in found:
            forward(key, pair(key, is_left, value, others, max(timestamp, time)), max(timestamp, time))
            if waiting is not None:
                entry = _TIME.pack(time) + (b"\x00" if is_left else b"\x01") + data
                if waiting.get(entry) is not None:
                    waiting.remove(time, entry)
        if at_once and not found:
            forward(key, pair(key, is_left, value, None, timestamp), timestamp)
        if found or not waits or waiting is None:
            return
        if high < stream_time:
            forward(key, pair(key, is_left, value, None, timestamp), timestamp)
            return
        entry = _TIME.pack(timestamp) + (b"\x01" if is_left else b"\x00") + data
        already = waiting.get(entry)
        values = [value] if already is None else [*already[1], value]
        waiting.put(timestamp, entry, (key, values))
        task.numbers[oldest_name] = min(task.numbers.get(oldest_name, NEVER), timestamp)

    return process
