"""A simulated process: whose code runs, and how it ends.

Every callback and task of the loop belongs to the process in whose context it was made; the harness itself
belongs to none. A process is killed as a whole: its ports are dead at once, its tasks are cancelled and
unwound before anything else happens, its timers are dropped. A paused one keeps everything and does nothing.
Does not know: nodes, disks, networks; they ask `is_alive`, and hear of the end by `on_end`.
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
        self.tasks: dict[asyncio.Task[Any], None] = {}  # in the order of their making
        self.parked: list[Step] = []  # what would have run while it is paused
        self.on_end: list[Callable[[], None]] = []
        self.context: Context = copy_context()
        self.context.run(PROCESS.set, self)

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine as part of this process."""
        return self.context.copy().run(self.loop.create_task, work)

    def freeze(self) -> None:
        """From this moment nothing that its code does has an effect; `end` clears it away."""
        if self.is_alive:
            self.is_alive = False
            for told in self.on_end:
                told()

    def end(self) -> None:
        """Kill it. For callbacks of the harness, not for its own code (see `freeze`) nor for tasks."""
        self.freeze()
        self.resume()  # tasks that have not begun want to be told, too
        self.loop.unwind(self)

    def pause(self) -> None:
        self.is_paused = self.is_alive

    def resume(self) -> None:
        self.is_paused = False
        parked, self.parked = self.parked, []
        self.loop.put_back(parked)
