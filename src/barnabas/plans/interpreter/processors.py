"""Processors of the user: their context, stores, and timers.

A processor has `process(message)`, and if it likes `init(context)` and `close()`. Timers by stream time are
due at multiples of their interval since 0; by wall clock, from when they were scheduled. Does not know: the
DSL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

from barnabas.plans import nodes as n
from barnabas.plans.interpreter.records import Message
from barnabas.plans.interpreter.task import Process, Task, builds

Clock = Literal["stream", "wall clock"]


class Punctuation:
    """A timer of a processor. `cancel` ends it."""

    def __init__(
        self, task: Task, name: str, clock: Clock, interval_ms: int, call: Callable[[int], Any]
    ) -> None:
        self.clock, self._task, self._name, self._interval_ms, self._call = (
            clock,
            task,
            name,
            interval_ms,
            call,
        )
        self._task.numbers.setdefault(name, 0 if clock == "stream" else task.now_ms + interval_ms)

    @property
    def due(self) -> int:
        return self._task.numbers[self._name]

    def run_if_due(self, time: int) -> None:
        """Call the function once, however many intervals have passed."""
        due = self.due
        if time < due:
            return
        base = 0 if self.clock == "stream" else due
        passed = (time - base) // self._interval_ms
        self._task.numbers[self._name] = base + (passed + 1) * self._interval_ms
        self._task.timestamp = time
        self._call(time)

    def cancel(self) -> None:
        if self in self._task.punctuations:
            self._task.punctuations.remove(self)


class KeyValueStore:
    """A store as processors see it: Python keys and values, iteration in the order of the keys' bytes."""

    def __init__(self, task: Task, name: str) -> None:
        self._task, self._state = task, task.state(name)
        self._write, self._read = task.key_writer(name), task.key_reader(name)

    def get(self, key: Any) -> Any:
        row = self._state.get(self._write(key))
        return None if row is None else row[0]

    def put(self, key: Any, value: Any) -> None:
        self._state.put(self._write(key), value, self._task.timestamp)

    def delete(self, key: Any) -> Any:
        before = self.get(key)
        self.put(key, None)
        return before

    def range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]:
        """Entries from `first` to `last`, both included; without them all."""
        low = None if first is None else self._write(first)
        high = None if last is None else self._write(last) + b"\x00"
        for key, row in self._state.range(low, high):
            yield self._read(key), row[0]

    def all(self) -> Iterator[tuple[Any, Any]]:
        return self.range()


class ProcessorContext:
    """Requests and actions open to a processor."""

    def __init__(self, task: Task, node: n.Process, forward: Process) -> None:
        self._task, self._node, self._forward = task, node, forward
        self._timers = 0

    @property
    def stream_time(self) -> int:
        return self._task.stream_time

    @property
    def wall_clock(self) -> int:
        return self._task.now_ms

    @property
    def topic(self) -> str:
        return self._task.topic

    @property
    def partition(self) -> int:
        return self._task.partition

    @property
    def offset(self) -> int:
        return self._task.offset

    def store(self, name: str) -> KeyValueStore:
        if name not in self._node.connected:
            known = ", ".join(self._node.connected) or "none"
            raise KeyError(f"{self._node.name} is not connected to a store {name!r}; connected: {known}")
        return KeyValueStore(self._task, name)

    def forward(self, message: Message) -> None:
        outer, self._task.headers = self._task.headers, message.headers
        self._forward(message.key, message.value, message.timestamp)
        self._task.headers = outer

    def schedule(self, interval_ms: int, clock: Clock, call: Callable[[int], Any]) -> Punctuation:
        """Call a function every so often, by stream time or by the wall clock."""
        if interval_ms < 1:
            raise ValueError(f"the interval of a timer is {interval_ms} ms; it must be at least 1 ms")
        name = f"{self._node.name} timer {self._timers}"
        self._timers += 1
        timer = Punctuation(self._task, name, clock, interval_ms, call)
        self._task.punctuations.append(timer)
        return timer


@builds(n.Process)
def process_(task: Task, node: n.Process, forward: Process) -> Process:
    processor = node.supplier()
    context = ProcessorContext(task, node, forward)
    if hasattr(processor, "init"):
        processor.init(context)
    if hasattr(processor, "close"):
        task.closers.append(processor.close)

    def process(key: Any, value: Any, timestamp: int) -> None:
        task.node_name = node.name
        processor.process(Message(key, value, timestamp, task.headers))

    return process
