"""Long work in pieces of a millisecond, so that the loop serves other requests in between.

In: steps, that is a generator that yields where other work may run; it needs to know nothing of loops. If it
yields a future, it continues when the future is done. Out: the same work spread over as many turns of the
loop as needed. All work of a node shares one millisecond in each turn, so ten long requests delay others no
longer than one does.
Does not know: what the work is. The generator must leave consistent state whenever it yields.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from barnabas.metadata.steps import Steps, at_once

__all__ = ["Pieces", "Steps", "WaitingSteps", "Work", "at_once"]

log = logging.getLogger("barnabas.pieces")
T = TypeVar("T")
WaitingSteps = Generator[asyncio.Future[Any] | None, None, T]
"""Steps that may wait. After yielding a future, the generator gets the result from the future itself."""
PIECE_S = 0.001


class Work(Generic[T]):
    """Steps under way. `finish` runs the remaining steps now, `cancel` drops them."""

    __slots__ = ("_result", "_steps", "_waiting", "error", "is_done", "waits_for")

    def __init__(self, steps: WaitingSteps[T]) -> None:
        self._steps = steps
        self.waits_for: asyncio.Future[Any] | None = None
        self._result: T
        self._waiting: list[asyncio.Future[None]] | None = None
        self.is_done = False
        self.error: BaseException | None = None  # the steps raised it, or it was cancelled

    def step(self) -> bool:
        """Run one step. Returns whether another can run now."""
        self.waits_for = None
        try:
            future = next(self._steps)
            if future is not None and not future.done():
                self.waits_for = future
        except StopIteration as done:
            self._result = done.value
            self._end()
        except BaseException as error:
            self.error = error
            self._end()
        return not self.is_done and self.waits_for is None

    def _end(self) -> None:
        self.is_done = True
        for future in self._waiting or ():
            if not future.done():
                future.set_result(None)

    @property
    def failed_unobserved(self) -> bool:
        """Whether it failed and no caller waits for the error."""
        return self.error is not None and self._waiting is None

    @property
    def result(self) -> T:
        """Return what the steps returned, or raise what they raised."""
        if self.error is not None:
            raise self.error
        return self._result

    def finish(self) -> T:
        """Run all steps now. Only for steps that do not wait."""
        while not self.is_done:
            self.step()
            assert self.waits_for is None
        return self.result

    def cancel(self) -> None:
        if not self.is_done:
            self._steps.close()
            self.error = asyncio.CancelledError()
            self._end()

    async def wait(self) -> T:
        """Wait for the result. If the waiting task is cancelled, the work continues."""
        if not self.is_done:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting = self._waiting or []
            self._waiting.append(future)
            await future
        return self.result


class Pieces:
    """The long work of one node. `now_s` is `Clock.work_s`: a simulation counts steps instead of time."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._due: deque[Work[Any]] = deque()
        self._is_scheduled = False

    @property
    def under_way(self) -> int:
        """How much work was begun and is not done."""
        return len(self._due)

    def begin(self, steps: WaitingSteps[T]) -> Work[T]:
        """Run a piece now and the rest in later turns of the loop. Short work is done when this returns."""
        work = Work(steps)
        self._run_piece(work, self._now_s() + PIECE_S)
        if not work.is_done:
            self._continue_later(work)
        elif work.error is not None:
            raise work.error
        return work

    async def run(self, steps: WaitingSteps[T]) -> T:
        """Queue the work behind other work and wait for its result. If the caller is cancelled, the work is
        cancelled too."""
        if self._due:
            work = Work(steps)
            self._due.append(work)
        else:
            work = self.begin(steps)
        try:
            return await work.wait()
        except asyncio.CancelledError:
            work.cancel()
            raise

    def _continue_later(self, work: Work[Any]) -> None:
        if work.waits_for is None:
            self._due.append(work)
            self._schedule()
        else:
            work.waits_for.add_done_callback(lambda _: self._continue(work))

    def _continue(self, work: Work[Any]) -> None:
        if not work.is_done:
            self._due.append(work)
            self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _run_piece(self, work: Work[Any], end_s: float) -> None:
        while work.step():
            if self._now_s() >= end_s:
                return

    def _turn(self) -> None:
        self._is_scheduled = False
        due, end_s = self._due, self._now_s() + PIECE_S
        while due:
            work = due.popleft()
            if not work.is_done:
                self._run_piece(work, end_s)
            if not work.is_done:
                self._continue_later(work)  # other work comes first in the next turn
                if work.waits_for is None:
                    return
            if work.failed_unobserved and not isinstance(work.error, asyncio.CancelledError):
                log.error("Background work failed", exc_info=work.error)
            if self._now_s() >= end_s:
                break
        if due:
            self._schedule()
