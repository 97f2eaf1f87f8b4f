"""The work queue of a state machine: long work runs in pieces, and later work waits behind it, in order.

In: steps that change the state, or must not see it change. Out: all of them run, one after the other. The
controller's host (`awaited`) uses it for every decision, a coordinator's (`broker.coordinators.host`) only
while something long is under way.
Does not know: what the work is, the state.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.runtime.pieces import Work

if TYPE_CHECKING:
    from barnabas.protocol import KafkaError
    from barnabas.runtime.pieces import Pieces, Steps

log = logging.getLogger("barnabas.pieces")
WAITING_MAX = 10_000
T = TypeVar("T")


def as_steps(call: Callable[..., None], *arguments: Any) -> Steps[None]:
    """A call as steps: one of them."""
    call(*arguments)
    return
    yield


class WorkQueue:
    __slots__ = ("_full", "_pieces", "_waiting", "_work", "is_busy")

    def __init__(self, pieces: Pieces, full: KafkaError) -> None:
        self._pieces = pieces
        self._full = full  # the refusal of requests when too many wait
        self._waiting: deque[Steps[None]] = deque()
        self._work: Work[None] | None = None
        self.is_busy = False  # work is under way: touch the state only by `add` and `run`

    def __len__(self) -> int:
        """How much waits behind the work that is under way."""
        return len(self._waiting)

    def check_capacity(self) -> None:
        """Raise KafkaError if the queue is full."""
        if len(self._waiting) >= WAITING_MAX:
            raise self._full.copy()

    def add(self, steps: Steps[None]) -> None:
        """Run the steps behind those before them. An idle queue runs their first piece at once."""
        self._waiting.append(steps)
        if not self.is_busy:
            self.is_busy = True
            self._work = self._pieces.begin(self._in_order())

    async def run(self, steps: Steps[T]) -> T:
        """Do the same and wait for the result, which is there at once if the work is short and the queue
        idle. If the caller is cancelled, its steps are dropped."""
        self.check_capacity()
        work = Work(steps)
        self.add(_steps_of(work))
        try:
            return await work.wait()
        except asyncio.CancelledError:
            work.cancel()
            raise

    def finish(self) -> None:
        """Run all that is left now: the host drops its state, and waiting requests get their refusals."""
        if self.is_busy and self._work is not None:
            self._work.finish()

    def _in_order(self) -> Steps[None]:
        while self._waiting:
            try:
                yield from self._waiting.popleft()
            except Exception:
                log.exception("Queued work failed")
            yield
        self.is_busy = False


def _steps_of(work: Work[Any]) -> Steps[None]:
    """The steps of work that someone waits for, who gets its error."""
    while not work.is_done and work.step():
        yield
