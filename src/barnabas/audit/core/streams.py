"""Streams: ranges that were counted, so that each part of a stream counts once.

In: count messages of one stream, in any order, some of them twice. Out: what is new in each. A range that is
covered already is dropped. A range that overlaps the end of what is covered (two leaders counted the same
partition for a moment) adds only what is behind: both counted the same log, so the counts of the remembered
ranges inside of it are subtracted. Does not know: tiers, buckets' meaning.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Mapping

from barnabas.audit.core.messages import CountMessage, Tally

RANGES_REMEMBERED = 64  # of a stream, for subtraction
GAPS_MAX = 1_000

Place = tuple[str, int, int]  # topic, partition, bucket
Counts = Mapping[Place, Tally]


class Stream:
    __slots__ = ("_ends", "_recent", "_starts", "conflicts")

    def __init__(self) -> None:
        self._starts: list[int] = []  # of the covered ranges, which do not touch each other
        self._ends: list[int] = []
        self._recent: OrderedDict[tuple[int, int], Counts] = OrderedDict()
        self.conflicts = 0  # ranges that overlap others in a way that cannot be resolved

    def accept(self, message: CountMessage) -> Counts | None:
        """What the message adds: None if it was counted before, or cannot be told apart from what was."""
        start, end = message.start, message.end
        counts = counts_of(message)
        overlap = self._overlap(start, end)
        if overlap == end - start:
            return None
        if overlap:
            inside = [each for each in self._recent if start <= each[0] and each[1] <= end]
            if sum(high - low for low, high in inside) != overlap:
                self.conflicts += 1
                return None
            for each in inside:
                counts = minus(counts, self._recent[each])
            missing = self._missing(start, end)
            if len(missing) == 1:  # otherwise nobody knows which part has which counts
                self._remember(*missing[0], counts)
        else:
            self._remember(start, end, counts)
        self._cover(start, end)
        return counts

    @property
    def end(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def start(self) -> int:
        return self._starts[0] if self._starts else 0

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """Ranges between the first and the last one that nobody counted."""
        return list(zip(self._ends, self._starts[1:], strict=False))

    def _remember(self, start: int, end: int, counts: Counts) -> None:
        self._recent[start, end] = counts
        if len(self._recent) > RANGES_REMEMBERED:
            self._recent.popitem(last=False)

    def _overlap(self, start: int, end: int) -> int:
        return end - start - sum(high - low for low, high in self._missing(start, end))

    def _missing(self, start: int, end: int) -> list[tuple[int, int]]:
        """The parts of a range that are not covered."""
        found = []
        at = bisect_right(self._ends, start)
        while start < end:
            low, high = (self._starts[at], self._ends[at]) if at < len(self._starts) else (end, end)
            if start < low:
                found.append((start, min(low, end)))
            start, at = max(start, high), at + 1
        return found

    def _cover(self, start: int, end: int) -> None:
        starts, ends = self._starts, self._ends
        first = last = bisect_right(ends, start - 1)
        while last < len(starts) and starts[last] <= end:
            start, end = min(start, starts[last]), max(end, ends[last])
            last += 1
        starts[first:last], ends[first:last] = [start], [end]
        if len(starts) > GAPS_MAX:  # the oldest gap is given up
            del starts[1], ends[0]


def counts_of(message: CountMessage) -> dict[Place, Tally]:
    found: dict[Place, Tally] = {}
    for entry in message.entries:
        place = (message.topic, entry.partition, entry.bucket_ms)
        found[place] = found.get(place, Tally()).plus(entry.tally)
    return found


def minus(counts: Counts, other: Counts) -> dict[Place, Tally]:
    found = dict(counts)
    for place, tally in other.items():
        # Compaction may have removed records before the second count: nothing is taken back for them.
        left = found.get(place, Tally()).plus(tally, -1)
        found[place] = Tally(*(max(each, 0) for each in left))
    return found
