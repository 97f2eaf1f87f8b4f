"""Waiters for the commit of records of one partition, in the order of their offsets.

In: an offset and a waiter, the high watermark as it moves. Out: each waiter is called once, with an error if
its records were not committed. A waiter that is ready is not called: its client has timed out or is
disconnected, and `forget_ready` drops it. A waiter that raises does not stop the calls of the others.
A partition has one such queue for produce requests and markers, each coordinator has one for its responses.
Does not know: requests, channels, how the high watermark moves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.produce.tick import Tick
    from barnabas.protocol import KafkaError

Committed = Callable[["KafkaError | None"], None]


class CommitWaiter(Protocol):
    is_ready: bool

    def on_commit(self, where: Partition, error: KafkaError | None, /) -> None: ...


W = TypeVar("W", bound=CommitWaiter)


class CommitCall:
    """A waiter that calls a function. Set `is_ready` to cancel the call."""

    __slots__ = ("_done", "is_ready")

    def __init__(self, done: Committed) -> None:
        self._done = done
        self.is_ready = False

    def on_commit(self, where: Partition, error: KafkaError | None) -> None:
        if not self.is_ready:
            self.is_ready = True
            self._done(error)


class CommitWaits(deque[tuple[int, W]]):
    __slots__ = ("_tick", "_where")

    def __init__(self, where: Partition, tick: Tick) -> None:
        super().__init__()
        self._where = where
        self._tick = tick

    def tell_committed(self) -> None:
        """Call the waiters for records below the high watermark."""
        high_watermark = self._where.state.high_watermark
        while self and self[0][0] < high_watermark:
            self.tell(self.popleft()[1], None)
        self._tick.send_committed()

    def tell_lost(self, from_offset: int, error: KafkaError) -> None:
        """Records from this offset on will never be committed, or not by this broker."""
        waiting = list(self)
        self.clear()
        for offset, waiter in waiting:
            if offset < from_offset:
                self.append((offset, waiter))
            else:
                self.tell(waiter, error)
        self._tick.send_committed()

    def tell(self, waiter: W, error: KafkaError | None) -> None:
        """Call one waiter, which is not in the queue any more."""
        try:
            waiter.on_commit(self._where, error)
        except Exception:
            self._tick.unexpected.note("telling of a commit in", self._where)

    def forget_ready(self) -> None:
        """Drop the waiters that need no call any more."""
        waiting = [each for each in self if not each[1].is_ready]
        if len(waiting) < len(self):
            self.clear()
            self.extend(waiting)
