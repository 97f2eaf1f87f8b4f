"""What waits for records of one partition to be committed, in the order of their offsets.

In: an offset and a waiter, the high watermark as it moves. Out: each waiter is told once: committed, or why
not. A waiter that is ready was answered otherwise, or its client is gone: it is told nothing, and
`forget_ready` lets go of it. A waiter that raises does not keep the others from being told.
Does not know: requests, channels, how the high watermark moves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.produce.tick import Tick
    from barnabas.protocol import KafkaError

Committed = Callable[["KafkaError | None"], None]


class CommitWaiter(Protocol):
    is_ready: bool

    def arrived(self, where: Partition, error: KafkaError | None, /) -> None: ...


class CommitCall:
    """A waiter that calls one function."""

    __slots__ = ("_done", "is_ready")

    def __init__(self, done: Committed) -> None:
        self._done = done
        self.is_ready = False

    def arrived(self, where: Partition, error: KafkaError | None) -> None:
        if not self.is_ready:
            self.is_ready = True
            self._done(error)


class CommitWaits(deque[tuple[int, CommitWaiter]]):
    __slots__ = ("_tick", "_where")

    def __init__(self, where: Partition, tick: Tick) -> None:
        super().__init__()
        self._where = where
        self._tick = tick

    def tell_committed(self) -> None:
        where = self._where
        high_watermark = where.state.high_watermark
        while self and self[0][0] < high_watermark:
            waiter = self.popleft()[1]
            try:
                waiter.arrived(where, None)
            except Exception:
                self._tick.unexpected.note("telling of a commit in", where)
        self._tick.send_committed()

    def tell_lost(self, from_offset: int, error: KafkaError) -> None:
        """Records from this offset on will never be committed, or not by this broker."""
        waiting = list(self)
        self.clear()
        for offset, waiter in waiting:
            if offset < from_offset:
                self.append((offset, waiter))
                continue
            try:
                waiter.arrived(self._where, error)
            except Exception:
                self._tick.unexpected.note("telling of lost records in", self._where)
        self._tick.send_committed()

    def forget_ready(self) -> None:
        """Let go of those who need not be told any more."""
        waiting = [each for each in self if not each[1].is_ready]
        if len(waiting) < len(self):
            self.clear()
            self.extend(waiting)
