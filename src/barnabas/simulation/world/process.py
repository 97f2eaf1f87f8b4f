"""A simulated process: the owner of callbacks and tasks, and how it ends.

Every callback and task of the loop belongs to the process in whose context it was created; those of the
harness belong to none. A process is killed as a whole: its ports stop at once, its tasks are cancelled and
unwound before any other code runs, and its timers are dropped. A paused process keeps its state and runs no
code.
Does not know: nodes, disks, networks. They read `is_alive` and register for `on_end`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from barnabas.simulation.world.loop import SimulatedLoop, Step

T = TypeVar("T")
PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)


class Process:
    def __init__(self, loop: SimulatedLoop, host: str) -> None:
        self.loop = loop
        self.host = host
        self.is_alive = True
        self.is_paused = False
        self.tasks: dict[asyncio.Task[Any], None] = {}  # in the order of their creation
        self.parked: list[Step] = []  # steps that are deferred while it is paused
        self.on_end: list[Callable[[], None]] = []
        self.context: Context = copy_context()
        self.context.run(PROCESS.set, self)

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine as part of this process."""
        return self.context.copy().run(self.loop.create_task, work)

    def freeze(self) -> None:
        """From now on its code has no effect on ports; `end` unwinds it."""
        if self.is_alive:
            self.is_alive = False
            for callback in self.on_end:
                callback()

    def end(self) -> None:
        """Kill the process. Call this in callbacks of the harness, not in its own code (see `freeze`) or in
        tasks."""
        self.freeze()
        self.resume()  # so that tasks which have not begun are cancelled, too
        self.loop.unwind(self)

    def pause(self) -> None:
        self.is_paused = self.is_alive

    def resume(self) -> None:
        self.is_paused = False
        parked, self.parked = self.parked, []
        self.loop.put_back(parked)
