"""An asyncio event loop with virtual time: it never waits, time jumps to the next timer.

In: an ordinary asyncio program. Out: the same steps in the same order for the same seed. Connections use the
simulated network. Executor work runs inline after a random latency. A callback belongs to the process that
scheduled it (`process`): callbacks of a paused process are deferred, those of a dead one are dropped.
Does not know: what the program is, how the network behaves.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from heapq import heapify, heappop, heappush
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.simulation.world.process import PROCESS, Process

if TYPE_CHECKING:
    from barnabas.simulation.world.network import Network, SimulatedServer
    from barnabas.simulation.world.transport import SimulatedTransport

T = TypeVar("T")
THREAD_MS_MEAN = 2.0
BUSY_CHANCE, BUSY_FACTOR = 0.02, 30  # sometimes the disk or the pool is busy
STEPS_AT_ONE_MOMENT_MAX = 200_000
UNWINDING_STEPS_MAX = 10_000


class Stuck(Exception):
    """The simulated program can make no progress."""


class Step(asyncio.TimerHandle):
    """A scheduled callback and its process. A reduced version of asyncio's handle."""

    __slots__ = ("process",)
    _callback: Any
    _args: Any
    _context: Context

    def __init__(  # of the base class nothing is needed
        self, when: float, callback: Callable[..., object], args: Any, context: Context | None
    ) -> None:
        self._when = when
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = self._source_traceback = None
        self._context = copy_context() if context is None else context
        self.process: Process | None = self._context.get(PROCESS)

    def cancel(self) -> None:
        """Cancel the step. It is dropped when it is due."""
        self._cancelled = True
        self._callback = self._args = None


class SimulatedLoop(asyncio.BaseEventLoop):
    # Of the base class, which is public but does not say so of these.
    _ready: deque[Step]
    _scheduled: list[tuple[float, int, Step]]
    _stopping: bool
    network: Network

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self._now = 0.0
        self._rng = rng
        self._steps_at_moment = 0
        self.steps = 0
        self._timers = 0
        self.thread_ms_mean = THREAD_MS_MEAN
        self.set_task_factory(make_task)

    def time(self) -> float:
        return self._now

    # -- the loop itself -----------------------------------------------------------------------------

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> Step:
        step = Step(self._now, callback, args, context)
        self._ready.append(step)
        return step

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> Step:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> Step:
        step = Step(when, callback, args, context)
        self._timers += 1  # timers of the same time run in the order of their creation
        heappush(self._scheduled, (when, self._timers, step))
        return step

    def _run_once(self) -> None:
        """Run steps until the loop is stopped. The base class calls this in a loop; looping here is
        faster."""
        scheduled, ready = self._scheduled, self._ready
        while True:
            if not ready:
                while scheduled and scheduled[0][2]._cancelled:
                    heappop(scheduled)
                if not scheduled:
                    raise Stuck("nothing is ready and nothing is scheduled")
                if scheduled[0][0] > self._now:
                    self._now = scheduled[0][0]
                    self._steps_at_moment = 0
            while scheduled and scheduled[0][0] <= self._now:
                ready.append(heappop(scheduled)[2])
            for _ in range(len(ready)):
                if not ready:
                    break  # the rest belonged to a process that was killed
                step = ready.popleft()
                if step._cancelled:
                    continue
                if step.process is not None and step.process.is_paused:
                    step.process.parked.append(step)
                    continue
                self.steps += 1
                self._steps_at_moment += 1
                self._run_step(step)
            if self._stopping:
                break
            if self._steps_at_moment > STEPS_AT_ONE_MOMENT_MAX:
                raise Stuck(f"{self._steps_at_moment} steps without time going on")

    def _run_step(self, step: Step) -> None:
        try:
            step._context.run(step._callback, *step._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            what = f"Exception in callback {step._callback!r}"
            self.call_exception_handler({"message": what, "exception": error, "handle": step})

    def _process_events(self, event_list: object) -> None:
        """There is no selector."""

    def _write_to_self(self) -> None:
        """There are no other threads to wake this one."""

    def reset_stuck(self) -> None:
        """Reset the limits, so that a stuck program can be unwound."""
        self._steps_at_moment = 0

    def put_back(self, steps: list[Step]) -> None:
        """Run deferred steps before those that are due now."""
        self._ready.extendleft(reversed(steps))

    def unwind(self, process: Process) -> None:
        """Cancel the tasks of a dead process and run its steps until none is left."""
        for task in list(process.tasks):
            task.cancel()
        for _ in range(UNWINDING_STEPS_MAX):
            mine = [step for step in self._ready if step.process is process]
            if not mine:
                break
            others = [step for step in self._ready if step.process is not process]
            self._ready.clear()
            self._ready.extend(others)
            for step in mine:
                if not step._cancelled:
                    self._run_step(step)
        for task in process.tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._scheduled[:] = [timer for timer in self._scheduled if timer[2].process is not process]
        heapify(self._scheduled)

    # -- ports ---------------------------------------------------------------------------------------

    def run_in_executor(  # type: ignore[override]
        self, executor: object, work: Callable[..., T], *arguments: Any
    ) -> asyncio.Future[T]:
        """Run work inline after a latency, without threads; its result arrives after another latency."""
        future: asyncio.Future[T] = self.create_future()

        def run() -> None:
            if future.cancelled():
                return
            try:
                finish: Callable[[], None] = partial(settle, future, work(*arguments), None)
            except Exception as error:
                finish = partial(settle, future, None, error)
            self.call_later(self._latency_s(), finish)

        self.call_later(self._latency_s(), run)
        return future

    def _latency_s(self) -> float:
        factor = BUSY_FACTOR if self._rng.random() < BUSY_CHANCE else 1
        return factor * self._rng.expovariate(2000 / self.thread_ms_mean)

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], host: str, port: int, **options: object
    ) -> tuple[SimulatedTransport, Any]:
        return await self.network.connect(protocol_factory, host, port)

    async def create_server(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], host: str | None = None, port: int = 0, **options: Any
    ) -> SimulatedServer:
        bound = options.get("sock")
        if bound is None:
            bound = self.network.bind(host or "", port)
        return self.network.listen(lambda arrival: arrival.serve(protocol_factory, lambda: None), bound)


def settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def make_task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    """Create a task and register it with its process, which cancels its tasks in order when it ends."""
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **options)
    context: Context | None = options.get("context")
    process = PROCESS.get() if context is None else context.get(PROCESS)
    if process is not None:
        process.tasks[task] = None
        task.add_done_callback(lambda done: process.tasks.pop(done, None))
    return task
