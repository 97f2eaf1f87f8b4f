"""Deadlines of one shard. A heartbeat only writes a field, and a hundred thousand timers take little memory.

In: timers that their owners set, move and cancel. Out: the timers that are due. Distant timers lie unsorted
in buckets of about a second. When a bucket's time begins, its timers move into a heap, some hundred at a
time, because the members of thousands of groups may share a bucket. Moving a deadline later, as every
heartbeat does, only writes a field: the timer is queued again when it comes up.
Does not know: the clock, what a deadline means.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

BUCKET_BITS = 10  # a bucket spans 1,024 ms
OPENED_AT_ONCE = 500


class Timer:
    """The base class of everything with a deadline, so that a timer needs no object of its own."""

    __slots__ = ("deadline_ms", "queued_ms")

    def __init__(self) -> None:
        self.deadline_ms: int | None = None  # anybody may move it later, or set it to None
        self.queued_ms: int | None = None  # when it comes up next; queue entries with another time are stale

    def cancel(self) -> None:
        self.deadline_ms = None


Timed = TypeVar("Timed", bound=Timer)


class Deadlines(Generic[Timed]):
    __slots__ = ("_bucket_starts", "_buckets", "_count", "_heap", "_last_set_ms", "_opened_ms")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timed]] = []
        self._buckets: dict[int, list[Timed]] = {}
        self._bucket_starts: list[int] = []  # a heap
        self._opened_ms = -1  # buckets that start up to here are in the heap
        self._count = 0
        self._last_set_ms = -1

    def __len__(self) -> int:
        return len(self._heap) + sum(len(bucket) for bucket in self._buckets.values())

    def set(self, timer: Timed, deadline_ms: int) -> None:
        # All timers set in one millisecond share one int object: most of a timer's memory is its ints.
        if deadline_ms == self._last_set_ms:
            deadline_ms = self._last_set_ms
        else:
            self._last_set_ms = deadline_ms
        timer.deadline_ms = deadline_ms
        queued_ms = timer.queued_ms
        if queued_ms is None or deadline_ms < queued_ms:
            self._queue(timer, deadline_ms)

    def next_ms(self) -> int | None:
        """When to call `pop_due`. It may be too early, never too late."""
        found = self._heap[0][0] if self._heap else None
        if self._bucket_starts and (found is None or self._bucket_starts[0] < found):
            return self._bucket_starts[0]
        return found

    def pop_due(self, now_ms: int) -> Timed | None:
        """The next timer whose deadline has passed, which is thereby cancelled. None if none is due, or if
        a bounded search found none; then `next_ms` is not in the future."""
        opened = 0
        while (found := self._pop_from_heap(now_ms)) is None and opened < OPENED_AT_ONCE:
            if not self._bucket_starts or self._bucket_starts[0] > now_ms:
                break
            opened += self._open(self._bucket_starts[0])
        return found

    def _pop_from_heap(self, now_ms: int) -> Timed | None:
        heap = self._heap
        looks = 0
        while heap and heap[0][0] <= now_ms and looks < OPENED_AT_ONCE:
            looks += 1
            queued_ms, _, timer = heappop(heap)
            if timer.queued_ms != queued_ms:
                continue  # it was moved to an earlier time after this entry
            timer.queued_ms = None
            deadline_ms = timer.deadline_ms
            if deadline_ms is None:
                continue
            if deadline_ms > now_ms:
                self._queue(timer, deadline_ms)
                continue
            timer.deadline_ms = None
            return timer
        return None

    def shift(self, by_ms: int) -> None:
        """Shift all deadlines after the clock was set, so that each stays as far off as it was."""
        queued = [timer for queued_ms, _, timer in self._heap if timer.queued_ms == queued_ms]
        for start_ms, bucket in self._buckets.items():
            queued += [timer for timer in bucket if timer.queued_ms == start_ms]
        self._heap, self._buckets, self._bucket_starts, self._opened_ms = [], {}, [], -1
        for timer in dict.fromkeys(queued):
            timer.queued_ms = None
            if timer.deadline_ms is not None:
                self.set(timer, timer.deadline_ms + by_ms)

    def _queue(self, timer: Timed, deadline_ms: int) -> None:
        start_ms = deadline_ms >> BUCKET_BITS << BUCKET_BITS
        if start_ms <= self._opened_ms:
            self._count += 1
            timer.queued_ms = deadline_ms
            heappush(self._heap, (deadline_ms, self._count, timer))
            return
        bucket = self._buckets.get(start_ms)
        if bucket is None:
            bucket = self._buckets[start_ms] = []
            heappush(self._bucket_starts, start_ms)
        # All timers of the bucket share one int object.
        timer.queued_ms = bucket[0].queued_ms if bucket and bucket[0].queued_ms == start_ms else start_ms
        bucket.append(timer)

    def _open(self, start_ms: int) -> int:
        """Move some timers of a bucket into the heap, and delete the bucket when it is empty."""
        self._opened_ms = start_ms
        bucket = self._buckets[start_ms]
        some = bucket[-OPENED_AT_ONCE:]
        for timer in some:
            if timer.queued_ms == start_ms:
                timer.queued_ms = None
                if timer.deadline_ms is not None:
                    self._queue(timer, timer.deadline_ms)
        del bucket[-OPENED_AT_ONCE:]
        if not bucket:
            del self._buckets[start_ms]
            heappop(self._bucket_starts)
        return len(some)
