"""An asyncio event loop with virtual time: nothing waits, time jumps to the next timer.

In: an ordinary asyncio program. Out: the same steps in the same order for the same seed. Connections are
the simulated network's, executor work runs inline after a latency drawn from the seed. Callbacks belong to
the process that made them (`process`): those of a paused one are set aside, those of a dead one are gone.
Does not know: what the program is, how the network behaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from functools import partial
from heapq import heapify, heappop
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.simulation.process import PROCESS, Process

if TYPE_CHECKING:
    from barnabas.simulation.network import Network, SimulatedServer
    from barnabas.simulation.transport import SimulatedTransport

T = TypeVar("T")
THREAD_MS_MEAN = 2.0
STEPS_AT_ONE_MOMENT_MAX = 200_000
UNWINDING_STEPS_MAX = 10_000


class Stuck(Exception):
    """The simulated program can make no progress."""


class SimulatedLoop(asyncio.BaseEventLoop):
    # Of the base class, which is public but does not say so of these.
    _ready: Any
    _scheduled: list[asyncio.TimerHandle]
    network: Network

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self._now = 0.0
        self._rng = rng
        self._steps_at_moment = 0
        self.steps = 0
        self.thread_ms_mean = THREAD_MS_MEAN
        self.set_task_factory(make_task)

    def time(self) -> float:
        return self._now

    # -- the loop itself -----------------------------------------------------------------------------

    def _run_once(self) -> None:
        scheduled, ready = self._scheduled, self._ready
        while scheduled and is_cancelled(scheduled[0]):
            heappop(scheduled)
        if not ready:
            if not scheduled:
                raise Stuck("nothing is ready and nothing is scheduled")
            if scheduled[0].when() > self._now:
                self._now = scheduled[0].when()
                self._steps_at_moment = 0
        while scheduled and scheduled[0].when() <= self._now:
            ready.append(heappop(scheduled))
        for _ in range(len(ready)):
            if not ready:
                break  # the rest belonged to a process that was killed
            handle = ready.popleft()
            if is_cancelled(handle):
                continue
            process = owner_of(handle)
            if process is not None and process.is_paused:
                process.parked.append(handle)
                continue
            self.steps += 1
            self._steps_at_moment += 1
            handle._run()
        if self._steps_at_moment > STEPS_AT_ONE_MOMENT_MAX:
            raise Stuck(f"{self._steps_at_moment} steps without time going on")

    def _process_events(self, event_list: object) -> None:
        """There is no selector."""

    def _write_to_self(self) -> None:
        """There are no other threads to wake this one."""

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are dropped when their time comes."""

    def begin_anew(self) -> None:
        """A program that was stuck may be unwound."""
        self._steps_at_moment = 0

    def put_back(self, handles: list[asyncio.Handle]) -> None:
        """What would have run before runs before what is due now."""
        self._ready.extendleft(reversed(handles))

    def unwind(self, process: Process) -> None:
        """Cancel the tasks of a dead process and run what is theirs until nothing is left of it."""
        for task in list(process.tasks):
            task.cancel()
        for _ in range(UNWINDING_STEPS_MAX):
            mine = [handle for handle in self._ready if owner_of(handle) is process]
            if not mine:
                break
            for handle in mine:
                self._ready.remove(handle)
            for handle in mine:
                if not is_cancelled(handle):
                    handle._run()
        for task in process.tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._scheduled[:] = [timer for timer in self._scheduled if owner_of(timer) is not process]
        heapify(self._scheduled)

    # -- ports ---------------------------------------------------------------------------------------

    def run_in_executor(  # type: ignore[override]
        self, executor: object, work: Callable[..., T], *arguments: Any
    ) -> asyncio.Future[T]:
        """No threads: the work is done inline, later, and the loop hears of it later still."""
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
        return self._rng.expovariate(2000 / self.thread_ms_mean)

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
        return self.network.listen(protocol_factory, bound)


def settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def make_task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    """Tasks are entered in the book of their process, in order, to be cancelled with it."""
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **options)
    context: Context | None = options.get("context")
    process = PROCESS.get() if context is None else context.get(PROCESS)
    if process is not None:
        process.tasks[task] = None
        task.add_done_callback(lambda done: process.tasks.pop(done, None))
    return task


def owner_of(handle: asyncio.Handle) -> Process | None:
    context: Context = handle._context  # type: ignore[attr-defined]
    return context.get(PROCESS)


def is_cancelled(handle: asyncio.Handle) -> bool:
    cancelled: bool = handle._cancelled
    return cancelled
