"""Aggregations in sliding windows: windows that records define, both ends included.

One window ends at each record, one starts 1 ms after it as soon as a later record falls in. Records earlier
than the difference share the window from 0. Null keys and null values are dropped. Does not know: other
windows.
"""

from __future__ import annotations

from typing import Any

from barnabas.plans import nodes as n
from barnabas.plans.aggregate_functions import functions_of
from barnabas.plans.interpreter.aggregations import own
from barnabas.plans.interpreter.records import Change
from barnabas.plans.interpreter.task import Process, Task
from barnabas.plans.windows import SlidingWindows, Windowed

Row = tuple[Any, int]


def sliding_aggregate(
    task: Task, node: n.WindowAggregate, windows: SlidingWindows, forward: Process
) -> Process:
    assert node.store is not None
    state, write, read = task.state(node.store), task.key_writer(node.store), task.key_reader(node.store)
    functions = functions_of(node.aggregate)
    initial, add, finish = functions.initial, functions.add, functions.finish
    difference, grace = windows.difference_ms, windows.grace_ms
    on_update, clock, emitted = node.emit == "update", f"{node.name} time", f"{node.name} emitted"

    def seen(value: Any) -> Any:
        return value if value is None or finish is None else finish(value)

    def send(key: Any, start: int, new: Any, old: Any, timestamp: int) -> None:
        if on_update:
            forward(Windowed(key, start, start + difference), Change(seen(new), seen(old)), timestamp)

    class Arrival:
        """One record and the windows of its key that it meets."""

        def __init__(self, key: Any, value: Any, timestamp: int, limit: int) -> None:
            self.key, self.value, self.timestamp, self.limit = key, value, timestamp, limit
            self.data = write(key)

        def update(self, start: int, before: Row | None, shown: bool = True) -> None:
            """Add the record to a window that is still open; `before` is what the window starts from."""
            if start + difference < self.limit:
                task.drop("late")
                return
            key, value, timestamp = self.key, self.value, self.timestamp
            old = None if before is None else before[0]
            newest = timestamp if before is None else max(before[1], timestamp)
            base = initial() if before is None else own(old)
            new = add(key, value, base, (key, value, timestamp, None, task))
            state.put(self.data, start, new, newest)
            send(key, start, new, old if shown else None, newest)

        def open_right(self, row: Row | None, exists: bool) -> None:
            """The window right after the record, if a later record is in it."""
            if exists or row is None or row[1] <= self.timestamp:
                return
            start = self.timestamp + 1
            state.put(self.data, start, row[0], row[1])
            send(self.key, start, row[0], None, row[1])

        def enter(self) -> None:
            timestamp = self.timestamp
            found = state.of(self.data, max(0, timestamp - 2 * difference), timestamp + 1)
            starts = {start for start, _ in found}
            left: Row | None = None
            right: Row | None = None
            previous: int | None = None
            has_left = False
            for start, row in reversed(found):
                end = start + difference
                if start == timestamp + 1:
                    continue
                if end > timestamp:
                    right = row if right is None else right
                    self.update(start, row)
                elif end == timestamp:
                    has_left = True
                    self.update(start, row)
                    if row[1] >= timestamp:
                        return  # a record with this time was here before: its windows exist
                    previous = row[1]
                    break
                else:
                    left, previous = row, row[1]
                    break
            if previous is not None:
                after = previous + 1
                if after not in starts and after + difference >= timestamp:
                    self.update(after, None)
            if not has_left:
                meets = previous is not None and previous >= timestamp - difference
                self.update(timestamp - difference, left if meets else None, False)
            self.open_right(right, timestamp + 1 in starts)

        def enter_early(self) -> None:
            """The record lies before the difference: it is in the window from 0."""
            timestamp = self.timestamp
            found = state.of(self.data, 0, timestamp + 1)
            starts = {start for start, _ in found}
            shared: Row | None = None
            right: Row | None = None
            previous: int | None = None
            for start, row in found:
                if start == timestamp + 1:
                    continue
                if start == 0:
                    shared = row
                    if row[1] < timestamp:
                        previous = row[1]
                else:
                    right = row
                    self.update(start, row)
            if right is None and shared is not None and shared[1] > timestamp:
                right = shared
            self.open_right(right, timestamp + 1 in starts)
            if previous is not None and previous + 1 not in starts:
                self.update(previous + 1, None)
            self.update(0, shared)

    def process(key: Any, value: Any, timestamp: int) -> None:
        if key is None or value is None:
            task.drop("null key or value")
            return
        task.node_name = node.name
        stream_time = task.numbers[clock] = max(task.numbers.get(clock, -1), timestamp)
        limit = stream_time - grace
        if timestamp + difference < limit:
            task.drop("late")
            return
        arrival = Arrival(key, value, timestamp, limit)
        if timestamp < difference:
            arrival.enter_early()
        else:
            arrival.enter()
        if not on_update:
            close(limit - difference - 1)

    def close(last: int) -> None:
        """Emit windows whose start is at most `last`, by start and key."""
        before = task.numbers.get(emitted, -1)
        if last <= before:
            return
        task.numbers[emitted] = last
        for start, data, row in state.take_between(before + 1, last):
            windowed = Windowed(read(data), start, start + difference)
            if node.on_close is not None:
                node.on_close(windowed, seen(row[0]))
            forward(windowed, Change(seen(row[0]), None), row[1])

    return process
