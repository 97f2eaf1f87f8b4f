"""The state batches of a share partition: ranges of offsets with a delivery count and a delivery state.

In: batches of a write, the start offset. Out: ranges in the order of offsets, none overlaps another. Where
batches overlap, the one with the higher delivery count wins, then the one with the higher state. Neighbours
of the same count and state become one range. The results are those of Apache Kafka's batch combiner, at the
cost of the ranges that a write touches instead of all.
Does not know: records, what the states mean.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

NO_START_OFFSET = -1


class StateBatch(NamedTuple):
    """The order of the fields is the order that batches are sorted by."""

    first_offset: int
    last_offset: int
    delivery_count: int
    delivery_state: int


class StateBatches:
    __slots__ = ("_loose", "ranges")

    def __init__(self, batches: Iterable[StateBatch] = ()) -> None:
        """Take over the batches of a snapshot. Batches that no coordinator would have written (they overlap,
        or end before they begin) are put in order first."""
        ranges = list(batches)
        if not is_in_order(ranges):
            ranges = sweep(usable(ranges, NO_START_OFFSET))
        self.ranges = ranges
        self._loose = loose_in(ranges)  # first offsets of ranges that the next `combine` joins to the left

    def __len__(self) -> int:
        return len(self.ranges)

    def copy(self) -> StateBatches:
        found = StateBatches()
        found.ranges, found._loose = list(self.ranges), list(self._loose)
        return found

    def combine(self, added: Iterable[StateBatch], start_offset: int) -> None:
        """Add batches, and drop what is below the start offset. A batch that ends before it begins adds
        nothing."""
        if start_offset != NO_START_OFFSET:
            self._cut_before(start_offset)
        new = usable(added, start_offset)
        if len(new) == 1 and not self._loose:
            low, high = self._touched_by(new[0].first_offset, new[0].last_offset)
            if low == high:  # most writes
                self.ranges.insert(low, new[0])
                return
        touched: set[int] = set()
        low, high = len(self.ranges), 0
        for batch in new:
            low_here, high_here = self._touched_by(batch.first_offset, batch.last_offset)
            low, high = min(low, low_here), max(high, high_here)
            touched.update(range(low_here, high_here))
        for first_offset in self._loose:
            index = bisect_left(self.ranges, (first_offset,))
            low, high = min(low, index - 1), max(high, index + 1)
            touched.update((index - 1, index))
        if not new and not touched:
            return
        ranges = self.ranges
        window = sweep([*(ranges[index] for index in sorted(touched)), *new])
        if len(touched) < high - low:
            window += [ranges[index] for index in range(low, high) if index not in touched]
            window.sort()
        ranges[low:high] = window
        self._loose = loose_in(ranges[max(low - 1, 0) : low + len(window) + 1])

    def _touched_by(self, first_offset: int, last_offset: int) -> tuple[int, int]:
        """The indexes of ranges that overlap these offsets or are next to them."""
        ranges = self.ranges
        low = bisect_left(ranges, (first_offset - 1,))
        if low and ranges[low - 1].last_offset >= first_offset - 1:
            low -= 1
        return low, bisect_left(ranges, (last_offset + 2,), low)

    def _cut_before(self, start_offset: int) -> None:
        ranges = self.ranges
        kept = bisect_left(ranges, (start_offset,))
        if kept and ranges[kept - 1].last_offset >= start_offset:
            kept -= 1
            ranges[kept] = ranges[kept]._replace(first_offset=start_offset)
        if kept:
            del ranges[:kept]
            first_offset = ranges[0].first_offset if ranges else None
            self._loose = [each for each in self._loose if first_offset is not None and each > first_offset]


def usable(batches: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """The batches from the start offset on, without those that end before they begin."""
    if start_offset == NO_START_OFFSET:
        return [batch for batch in batches if batch.first_offset <= batch.last_offset]
    return [
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in batches
        if batch.last_offset >= start_offset and batch.first_offset <= batch.last_offset
    ]


def combined(batches: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """The batches of one write, without overlaps, from the start offset on."""
    found = usable(batches, start_offset)
    return sweep(found) if len(found) > 1 else found


def sweep(batches: list[StateBatch]) -> list[StateBatch]:
    """Combine batches from left to right. Each must end where it begins or later. `batches` is used up."""
    if not batches:
        return []
    heapify(batches)
    found = []
    left = heappop(batches)
    while batches:
        right = batches[0]
        gap = right.first_offset - left.last_offset - 1
        if gap > 0 or (gap == 0 and left[2:] != right[2:]):
            found.append(left)
        else:
            heappop(batches)
            for piece in overlaid(left, right):
                heappush(batches, piece)
        left = heappop(batches)
    found.append(left)
    return found


def overlaid(left: StateBatch, right: StateBatch) -> Sequence[StateBatch]:
    """Two batches that overlap or are of the same state, `left` sorted before `right`, as one to three."""
    if left[2:] == right[2:]:
        return (left._replace(last_offset=max(left.last_offset, right.last_offset)),)
    if right[2:] > left[2:]:
        pieces = [right]
        if left.first_offset < right.first_offset:
            pieces.append(left._replace(last_offset=right.first_offset - 1))
        if left.last_offset > right.last_offset:
            pieces.append(left._replace(first_offset=right.last_offset + 1))
        return pieces
    if right.last_offset > left.last_offset:
        return left, right._replace(first_offset=left.last_offset + 1)
    return (left,)


def is_in_order(ranges: Sequence[StateBatch]) -> bool:
    end = None
    for batch in ranges:
        if batch.first_offset > batch.last_offset or (end is not None and batch.first_offset <= end):
            return False
        end = batch.last_offset
    return True


def loose_in(ranges: Sequence[StateBatch]) -> list[int]:
    """First offsets of ranges that continue the range before them with the same state. Apache Kafka joins
    such neighbours with the next write."""
    return [
        right.first_offset
        for left, right in pairwise(ranges)
        if left.last_offset + 1 == right.first_offset and left[2:] == right[2:]
    ]
