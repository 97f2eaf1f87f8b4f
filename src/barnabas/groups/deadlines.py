"""Deadlines of one shard: a heap that heartbeats do not touch.

In: timers that are set, moved and cancelled by those who own them. Out: the timers that are due. Moving a
deadline later, which every heartbeat does, only writes a field: the timer's place in the heap is looked at
again when it comes up. Does not know: the clock, what a deadline means.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

Owner = TypeVar("Owner")


class Timer(Generic[Owner]):
    """One deadline of one owner. `deadline_ms` may be moved later or set to None by anybody."""

    __slots__ = ("deadline_ms", "owner", "queued_ms")

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.deadline_ms: int | None = None
        self.queued_ms: int | None = (
            None  # invariant: at most one entry of the heap has this time and this timer
        )

    def cancel(self) -> None:
        self.deadline_ms = None


class Deadlines(Generic[Owner]):
    __slots__ = ("_count", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer[Owner]]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, timer: Timer[Owner], deadline_ms: int) -> None:
        timer.deadline_ms = deadline_ms
        queued_ms = timer.queued_ms
        if queued_ms is None or deadline_ms < queued_ms:
            self._push(timer, deadline_ms)

    def next_ms(self) -> int | None:
        """The time to look again; it may be too early, never too late."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> Timer[Owner] | None:
        """The next timer whose deadline is over, cancelled by this; None when there is none."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            queued_ms, _, timer = heappop(heap)
            if timer.queued_ms != queued_ms:
                continue  # it was set to an earlier time after this
            timer.queued_ms = None
            deadline_ms = timer.deadline_ms
            if deadline_ms is None:
                continue
            if deadline_ms > now_ms:
                self._push(timer, deadline_ms)
                continue
            timer.deadline_ms = None
            return timer
        return None

    def _push(self, timer: Timer[Owner], deadline_ms: int) -> None:
        self._count += 1
        timer.queued_ms = deadline_ms
        heappush(self._heap, (deadline_ms, self._count, timer))
