"""Delays as a small histogram that can be added up: how long after its timestamp a record was counted.

In: delays in milliseconds. Out: percentiles, within a fifth of the true value; the maximum is exact. A record
from the future (its producer's clock is ahead of the counting host's) has delay 0, and is noted.
Does not know: clocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil, log2

STEPS = 4  # to double the delay
INDEX_MAX = 1 + STEPS * 50


def index_of(delay_ms: int) -> int:
    return min(1 + int(STEPS * log2(delay_ms)), INDEX_MAX) if delay_ms > 0 else 0


def upper_ms(index: int) -> int:
    return ceil(2 ** (index / STEPS)) if index > 0 else 0


class Delays:
    __slots__ = ("ahead_max_ms", "counts", "max_ms")

    def __init__(
        self, counts: Mapping[int, int] | None = None, max_ms: int = 0, ahead_max_ms: int = 0
    ) -> None:
        self.counts = dict(counts or {})
        self.max_ms = max_ms
        self.ahead_max_ms = ahead_max_ms  # how far ahead of the counting host's clock timestamps were

    def add(self, delay_ms: int, count: int = 1) -> None:
        index = index_of(delay_ms)
        self.counts[index] = self.counts.get(index, 0) + count
        if delay_ms > self.max_ms:
            self.max_ms = delay_ms
        elif -delay_ms > self.ahead_max_ms:
            self.ahead_max_ms = -delay_ms

    def merge(self, other: Delays) -> None:
        for index, count in other.counts.items():
            self.counts[index] = self.counts.get(index, 0) + count
        self.max_ms = max(self.max_ms, other.max_ms)
        self.ahead_max_ms = max(self.ahead_max_ms, other.ahead_max_ms)

    def percentile_ms(self, share: float) -> int | None:
        """The delay that this share of records did not exceed. None if no record has one."""
        total = sum(self.counts.values())
        if not total:
            return None
        wanted, seen = ceil(share * total), 0
        for index in sorted(self.counts):
            seen += self.counts[index]
            if seen >= wanted:
                return min(upper_ms(index), self.max_ms)
        return self.max_ms

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Delays):
            return NotImplemented
        mine, theirs = ((each.counts, each.max_ms, each.ahead_max_ms) for each in (self, other))
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]  # mutable


def merged(many: Iterable[Delays]) -> Delays:
    found = Delays()
    for each in many:
        found.merge(each)
    return found
