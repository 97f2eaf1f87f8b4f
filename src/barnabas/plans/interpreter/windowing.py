"""Aggregations in tumbling, hopping, unlimited and session windows.

Null keys are dropped, null values reach the functions. A record is late for one window at a time. Does not
know: how sliding windows work (`sliding`), suppress.
"""

from __future__ import annotations

from typing import Any

from barnabas.plans import nodes as n
from barnabas.plans.aggregate_functions import Functions, functions_of
from barnabas.plans.interpreter.aggregations import own
from barnabas.plans.interpreter.records import Change, TaskError
from barnabas.plans.interpreter.sliding import sliding_aggregate
from barnabas.plans.interpreter.task import Process, Task, builds
from barnabas.plans.windows import SessionWindows, TimeWindows, UnlimitedWindows, Windowed

FOREVER = (1 << 63) - 1


@builds(n.WindowAggregate)
def window_aggregate(task: Task, node: n.WindowAggregate, forward: Process) -> Process:
    if isinstance(node.windows, SessionWindows):
        return _sessions(task, node, node.windows, forward)
    if isinstance(node.windows, TimeWindows | UnlimitedWindows):
        return _time_windows(task, node, node.windows, forward)
    return sliding_aggregate(task, node, node.windows, forward)


def _starts(windows: TimeWindows | UnlimitedWindows, timestamp: int) -> range:
    if isinstance(windows, UnlimitedWindows):
        return range(windows.start_ms, windows.start_ms + 1 if timestamp >= windows.start_ms else 0)
    size, advance = windows.size_ms, windows.advance_ms
    first = (timestamp - size + advance) // advance * advance
    return range(first if first > 0 else 0, timestamp + 1, advance)


def _finished(functions: Functions, value: Any) -> Any:
    return value if value is None or functions.finish is None else functions.finish(value)


def _time_windows(
    task: Task, node: n.WindowAggregate, windows: TimeWindows | UnlimitedWindows, forward: Process
) -> Process:
    assert node.store is not None
    state, write, read = task.state(node.store), task.key_writer(node.store), task.key_reader(node.store)
    functions = functions_of(node.aggregate)
    initial, add = functions.initial, functions.add
    size = windows.size_ms if isinstance(windows, TimeWindows) else FOREVER
    grace = windows.grace_ms if isinstance(windows, TimeWindows) else 0
    on_update, clock, emitted = node.emit == "update", f"{node.name} time", f"{node.name} emitted"

    def process(key: Any, value: Any, timestamp: int) -> None:
        if key is None:
            task.drop("null key")
            return
        task.node_name = node.name
        stream_time = task.numbers.get(clock, -1)
        if timestamp > stream_time:
            stream_time = task.numbers[clock] = timestamp
        data = write(key)
        scope = (key, value, timestamp, None, task)
        for start in _starts(windows, timestamp):
            end = min(start + size, FOREVER)
            if end <= stream_time - grace:
                task.drop("late")
                continue
            row = state.get(data, start)
            old = None if row is None else row[0]
            newest = timestamp if row is None else max(row[1], timestamp)
            new = add(key, value, initial() if row is None else own(old), scope)
            state.put(data, start, new, newest)
            if on_update:
                change = Change(_finished(functions, new), _finished(functions, old))
                forward(Windowed(key, start, end), change, newest)
        if not on_update:
            close(stream_time - grace - size)

    def close(last: int) -> None:
        """Emit windows whose start is at most `last`, by start and key."""
        before = task.numbers.get(emitted, -1)
        if last <= before:
            return
        task.numbers[emitted] = last
        for start, data, row in state.take_between(before + 1, last):
            windowed = Windowed(read(data), start, start + size)
            result = _finished(functions, row[0])
            if node.on_close is not None:
                node.on_close(windowed, result)
            forward(windowed, Change(result, None), row[1])

    return process


def _sessions(task: Task, node: n.WindowAggregate, windows: SessionWindows, forward: Process) -> Process:
    assert node.store is not None
    state, write, read = task.state(node.store), task.key_writer(node.store), task.key_reader(node.store)
    functions = functions_of(node.aggregate)
    merge = functions.merge
    if merge is None:
        raise TaskError(f"{node.name}: an aggregation in sessions needs a merger")
    gap, grace = windows.gap_ms, windows.grace_ms
    on_update, clock, emitted = node.emit == "update", f"{node.name} time", f"{node.name} emitted"

    def process(key: Any, value: Any, timestamp: int) -> None:
        if key is None:
            task.drop("null key")
            return
        task.node_name = node.name
        stream_time = task.numbers[clock] = max(task.numbers.get(clock, -1), timestamp)
        limit = stream_time - gap - grace
        data = write(key)
        near = [s for s in state.find(data, timestamp - gap, timestamp + gap) if s[1] >= limit]
        start = min([timestamp, *(session[0] for session in near)])
        end = max([timestamp, *(session[1] for session in near)])
        if end < limit:
            task.drop("late")
        else:
            aggregate = functions.initial()
            for old_start, old_end, old in near:
                aggregate = merge(key, aggregate, own(old))
                if (start, end) != (timestamp, timestamp):
                    state.put(data, old_start, old_end, None)
                    if on_update:
                        change = Change(None, _finished(functions, old))
                        forward(Windowed(key, old_start, old_end), change, old_end)
            new = functions.add(key, value, aggregate, (key, value, timestamp, None, task))
            state.put(data, start, end, new)
            if on_update:
                forward(Windowed(key, start, end), Change(_finished(functions, new), None), end)
        if not on_update:
            close(limit - 1)

    def close(last: int) -> None:
        """Emit sessions that ended at `last` or before."""
        before = task.numbers.get(emitted, -1)
        if last <= before:
            return
        task.numbers[emitted] = last
        for end, start, data in state.ended_between(before + 1, last):
            windowed = Windowed(read(data), start, end)
            result = _finished(functions, state.value_of(data, start, end))
            if node.on_close is not None:
                node.on_close(windowed, result)
            forward(windowed, Change(result, None), end)

    return process
