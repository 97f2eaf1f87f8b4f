"""Processors of the user: their context and timers.

A processor has `process(message)`, and if it likes `init(context)` and `close()`. Timers by stream time are
due at multiples of their interval since 0; by wall clock, from when they were scheduled. Does not know: the
DSL.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, cast

from barnabas.plans import nodes as n
from barnabas.plans.interpreter.processor_stores import handle_of
from barnabas.plans.interpreter.records import Message
from barnabas.plans.interpreter.task import Process, Task, builds

Clock = Literal["stream", "wall clock"]
LATER = r" timer (\d+) of (\d+) ms by (stream|wall clock) calls (\w+)"  # a timer that `init` did not begin


CANCELLED = 2**62  # instead of the time at which a timer is due


class Punctuation:
    """A timer of a processor. `cancel` ends it. `numbers` has the time at which it is due, by its name: those
    of the task are part of its state."""

    def __init__(
        self,
        task: Task,
        numbers: dict[str, int],
        name: str,
        clock: Clock,
        interval_ms: int,
        call: Callable[[int], Any],
        *,
        is_of_init: bool,
    ) -> None:
        self.clock: Clock = clock
        self.interval_ms, self.name = interval_ms, name
        self._task, self._numbers, self._call, self._is_of_init = task, numbers, call, is_of_init
        numbers.setdefault(name, 0 if clock == "stream" else task.now_ms + interval_ms)

    @property
    def due(self) -> int:
        return self._numbers[self.name]

    def run_if_due(self, time: int) -> None:
        """Call the function once, however many intervals have passed."""
        due = self.due
        if time < due:
            return
        base = 0 if self.clock == "stream" else due
        passed = (time - base) // self.interval_ms
        self._numbers[self.name] = base + (passed + 1) * self.interval_ms
        self._task.timestamp = time
        self._call(time)

    def cancel(self) -> None:
        """End the timer for good: `init` does not begin it again where the task is made anew."""
        if self in self._task.punctuations:
            self._task.punctuations.remove(self)
            if self._is_of_init:
                self._numbers[self.name] = CANCELLED
            else:
                self._numbers.pop(self.name, None)


class ProcessorContext:
    """Requests and actions open to a processor."""

    def __init__(self, task: Task, node: n.Process, forward: Process, processor: Any) -> None:
        self._task, self._node, self._forward = task, node, forward
        self._processor = processor
        self._is_in_init = False
        self._timers_begun = 0

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

    def store(self, name: str) -> Any:
        """A store that the processor is connected to, or that of a global table, by `processor_stores`."""
        if name not in self._node.connected and name not in self._task.global_states:
            known = ", ".join(self._node.connected) or "none"
            raise KeyError(f"{self._node.name} is not connected to a store {name!r}; connected: {known}")
        return handle_of(self._task, name)

    def forward(self, message: Message) -> None:
        outer, self._task.headers = self._task.headers, message.headers
        self._forward(message.key, message.value, message.timestamp)
        self._task.headers = outer

    def schedule(self, interval_ms: int, clock: Clock, call: Callable[[int], Any]) -> Punctuation:
        """Call a function every so often, by stream time or by the wall clock.

        Timers of `init`, and those that call a method of the processor, are part of the task's state: a
        worker that takes the task over goes on with them. Others end with the processor."""
        if interval_ms < 1:
            raise ValueError(f"the interval of a timer is {interval_ms} ms; it must be at least 1 ms")
        name = f"{self._node.name} timer {self._timers_begun}"
        self._timers_begun += 1
        if self._is_in_init:
            return self._begun(self._task.numbers, name, clock, interval_ms, call)
        method = getattr(call, "__name__", "")
        if method and getattr(self._processor, method, None) == call:
            name = f"{name} of {interval_ms} ms by {clock} calls {method}"
            return self._begun(self._task.numbers, name, clock, interval_ms, call)
        return self._begun({}, name, clock, interval_ms, call)

    @property
    def timers(self) -> list[Punctuation]:
        """Timers of this processor that run."""
        mine = f"{self._node.name} timer "
        return [timer for timer in self._task.punctuations if timer.name.startswith(mine)]

    def _begun(
        self, numbers: dict[str, int], name: str, clock: Clock, interval_ms: int, call: Callable[[int], Any]
    ) -> Punctuation:
        is_of_init = self._is_in_init
        timer = Punctuation(self._task, numbers, name, clock, interval_ms, call, is_of_init=is_of_init)
        if timer.due != CANCELLED:
            self._task.punctuations.append(timer)
        return timer

    def init(self) -> None:
        """Let the processor begin, and go on with the timers that it scheduled later, in another worker."""
        if hasattr(self._processor, "init"):
            self._is_in_init = True
            self._processor.init(self)
            self._is_in_init = False
        later = re.compile(re.escape(self._node.name) + LATER)
        for name in list(self._task.numbers):
            found = later.fullmatch(name)
            if found is None:
                continue
            number, interval_ms, clock, method = found.groups()
            call = getattr(self._processor, method, None)
            if call is None:  # of an earlier version of the processor
                del self._task.numbers[name]
                continue
            self._timers_begun = max(self._timers_begun, int(number) + 1)
            self._begun(self._task.numbers, name, cast(Clock, clock), int(interval_ms), call)


@builds(n.Process)
def process_(task: Task, node: n.Process, forward: Process) -> Process:
    processor = node.supplier()
    ProcessorContext(task, node, forward, processor).init()
    if hasattr(processor, "close"):
        task.closers.append(processor.close)

    def process(key: Any, value: Any, timestamp: int) -> None:
        task.node_name = node.name
        processor.process(Message(key, value, timestamp, task.headers))

    return process
