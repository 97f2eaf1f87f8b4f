"""Waiters for the commit of records of one log, in the order of their offsets.

In: an offset and a waiter, the high watermark as it moves. Out: each waiter is called once, with an error if
its records were not committed. A waiter that is ready is not called: its client has timed out or is
disconnected, and `forget_ready` drops it. A waiter that raises does not stop the calls of the others.
A partition has one such queue for produce requests and markers, each coordinator one for its responses, the
metadata log one for the controller, and a registry one for records that it reads back.
Does not know: requests, channels, how the high watermark moves.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from barnabas.runtime.unexpected import UnexpectedErrors

if TYPE_CHECKING:
    from barnabas.protocol import KafkaError

Committed = Callable[["KafkaError | None"], None]


class CommitWaiter(Protocol):
    @property
    def is_ready(self) -> bool:
        """Whether it needs no call any more."""

    def on_commit(self, log: Any, error: Any, /) -> None:
        """The records are committed in the log, or, with an error, they will not be."""


W = TypeVar("W", bound=CommitWaiter)


class CommitCall:
    """A waiter that calls a function. Set `is_ready` to cancel the call."""

    __slots__ = ("_done", "is_ready")

    def __init__(self, done: Committed) -> None:
        self._done = done
        self.is_ready = False

    def on_commit(self, log: Any, error: KafkaError | None) -> None:
        if not self.is_ready:
            self.is_ready = True
            self._done(error)


class CommitFuture:
    """A waiter for a coroutine, which awaits `future`."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_ready(self) -> bool:
        return self.future.done()

    def on_commit(self, log: Any, error: Exception | None) -> None:
        if self.future.done():
            return  # its task was cancelled
        if error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(error)
            self.future.exception()  # the waiting task may be cancelled: mark the exception as retrieved


class CommitWaits(deque[tuple[int, W]]):
    __slots__ = ("_after_calls", "_log", "_unexpected")

    def __init__(
        self,
        log: Any,
        unexpected: UnexpectedErrors | None = None,
        after_calls: Callable[[], None] | None = None,
    ) -> None:
        """`log` is passed to the waiters. `after_calls` is called after some of them were called."""
        super().__init__()
        self._log = log
        self._unexpected = unexpected or UnexpectedErrors()
        self._after_calls = after_calls

    def tell_committed(self, high_watermark: int) -> None:
        """Call the waiters for records below the high watermark."""
        while self and self[0][0] < high_watermark:
            self.tell(self.popleft()[1], None)
        if self._after_calls is not None:
            self._after_calls()

    def tell_lost(self, from_offset: int, error: Exception) -> None:
        """Records from this offset on will never be committed, or not by this node."""
        waiting = list(self)
        self.clear()
        for offset, waiter in waiting:
            if offset < from_offset:
                self.append((offset, waiter))
            else:
                self.tell(waiter, error)
        if self._after_calls is not None:
            self._after_calls()

    def tell(self, waiter: W, error: Exception | None) -> None:
        """Call one waiter, which is not in the queue any more."""
        try:
            waiter.on_commit(self._log, error)
        except Exception:
            self._unexpected.note("telling of a commit in", self._log)

    def forget_ready(self) -> None:
        """Drop the waiters that need no call any more."""
        waiting = [each for each in self if not each[1].is_ready]
        if len(waiting) < len(self):
            self.clear()
            self.extend(waiting)


def committed_future(waits: CommitWaits[CommitFuture], offset: int) -> asyncio.Future[None]:
    """A future that is done when the record at the offset is committed. Offsets may come in any order."""
    waiter = CommitFuture()
    place = len(waits)
    while place and waits[place - 1][0] > offset:
        place -= 1
    waits.insert(place, (offset, waiter))
    return waiter.future
