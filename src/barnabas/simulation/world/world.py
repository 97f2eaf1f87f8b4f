"""A world: the seed, loop and network of one simulation, and the problems found in it.

In: a seed. Out: a loop to run a history on, random generators by name (so that draws of one part do not
change those of another), and `problems`: exceptions that the code of a running process did not handle.
Does not know: nodes, clients, what a history checks.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter
from collections.abc import Coroutine
from random import Random
from types import TracebackType
from typing import Any, TypeVar

from barnabas.client import asyncio_network
from barnabas.simulation.world.clock import SimulatedClock
from barnabas.simulation.world.disk import Stopped
from barnabas.simulation.world.loop import SimulatedLoop, Stuck
from barnabas.simulation.world.network import Network
from barnabas.simulation.world.process import PROCESS, Process
from barnabas.simulation.world.trace import Trace

T = TypeVar("T")
ROOT_LOGGER = "barnabas"


def rng_of(seed: int, name: str) -> Random:
    """The random generator of one part of a history."""
    return Random(f"{seed}/{name}")


class Unexpected(Exception):
    """Code of a running process raised an exception that it did not handle."""


class World:
    """`with World(seed) as world: world.run(history(world), seconds_max=...)`."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.loop = SimulatedLoop(self.rng("threads"))
        self.trace = Trace(self.loop.time)
        self.network = self.loop.network = Network(self.loop, self.rng("network"), self.trace)
        self.clock = SimulatedClock(self.loop.time)
        self.problems: list[Unexpected] = []
        self.happened = Counter[str]()  # faults that had an effect
        self._main: asyncio.Task[Any] | None = None
        self._processes: list[Process] = []
        self._listener = _FailureHandler(self)
        self.loop.set_exception_handler(self._failed)

    def rng(self, name: str) -> Random:
        return rng_of(self.seed, name)

    def __enter__(self) -> World:
        asyncio_network.rng.seed(f"{self.seed}/patience")
        logger = logging.getLogger(ROOT_LOGGER)
        self._propagates, logger.propagate = logger.propagate, False
        logger.addHandler(self._listener)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logger = logging.getLogger(ROOT_LOGGER)
        logger.removeHandler(self._listener)
        logger.propagate = self._propagates
        self.loop.set_exception_handler(lambda loop, context: None)
        self._main = None
        self.loop.reset_stuck()
        self.loop.run_until_complete(self._end())
        self.loop.close()

    async def _end(self) -> None:
        """Cancel and unwind all tasks while the loop still runs."""
        for process in self._processes:
            self.loop.call_soon(process.end)
        await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        for _ in range(3):
            await asyncio.sleep(0)

    def process(self, host: str) -> Process:
        process = Process(self.loop, host)
        self._processes.append(process)
        return process

    def run(self, history: Coroutine[Any, Any, T], seconds_max: float) -> T:
        """Run a history and return its result. `Stuck` if it does not end in time, `Unexpected` if code
        failed."""
        task = self._main = self.loop.create_task(history)
        over = self.loop.call_later(seconds_max, task.cancel)
        try:
            result: T = self.loop.run_until_complete(task)
        except asyncio.CancelledError:
            if self.problems:
                raise self.problems[0] from self.problems[0].__cause__
            raise Stuck(f"not over after {seconds_max:.0f} virtual seconds") from None
        finally:
            over.cancel()
        gc.collect()  # destructors of failed tasks report errors that were never retrieved
        if self.problems:
            raise self.problems[0] from self.problems[0].__cause__
        return result

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a task of the harness during the history. Its failure ends the history."""

        def done(task: asyncio.Task[Any]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                self.fail(f"{type(error).__name__}: {error}", error)

        task = self.loop.create_task(work)
        task.add_done_callback(done)
        return task

    def fail(self, what: str, cause: BaseException | None) -> None:
        """Record a problem and end the history."""
        problem = Unexpected(what)
        problem.__cause__ = cause
        self.problems.append(problem)
        if self._main is not None:
            self._main.cancel()

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle exceptions that asyncio passes to the loop's exception handler."""
        error = context.get("exception")
        process = PROCESS.get()
        if isinstance(error, Stopped) or (process is not None and not process.is_alive):
            return
        self.fail(f"{context.get('message')}: {error!r}", error)


class _FailureHandler(logging.Handler):
    """Treats log records with a traceback as failures, and adds other records to the trace."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        process = PROCESS.get()
        if process is None or not process.is_alive:
            return
        self._world.trace.remark("log", process.host, record.levelname, record.name, record.getMessage())
        if record.exc_info is not None and record.exc_info[1] is not None:
            self._world.fail(record.getMessage(), record.exc_info[1])
