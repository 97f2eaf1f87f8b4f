"""Histograms with percentiles of recent values, made for counting on a hot path.

In: one call for each value, or for many equal ones. Out: a snapshot with Kafka's attributes. The buckets are
a sixteenth of a power of two wide, so that a percentile is wrong by at most 1/32 (3.2 %). Kafka keeps a
sample of about a thousand values that forgets exponentially; this counts every value. Percentiles cover the
last one to two minutes, the other attributes everything since the start. Does not know: names, clocks: its
owner calls `rotate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, sqrt
from operator import add

# 32 buckets for the values up to 31, then 16 for each doubling: 63 bits of nanoseconds are 292 years.
BUCKETS = 1024
PERCENTILES = {
    "50thPercentile": 0.5,
    "75thPercentile": 0.75,
    "95thPercentile": 0.95,
    "98thPercentile": 0.98,
    "99thPercentile": 0.99,
    "999thPercentile": 0.999,
}
SHARES = tuple(PERCENTILES.values())


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A histogram at one moment, in the unit that it is shown in."""

    count: int
    sum: float
    min: float
    max: float
    mean: float
    deviation: float
    percentiles: tuple[float, ...]  # in the order of `PERCENTILES`
    recent: int = 0  # how many values the percentiles are of

    def attributes(self) -> dict[str, float]:
        """Kafka's attributes of a histogram."""
        return {
            **dict(zip(PERCENTILES, self.percentiles, strict=True)),
            "Count": self.count,
            "Max": self.max,
            "Mean": self.mean,
            "Min": self.min,
            "StdDev": self.deviation,
        }


EMPTY = Snapshot(0, 0.0, 0.0, 0.0, 0.0, 0.0, (0.0,) * len(SHARES))


class Histogram:
    """Values that are not negative."""

    __slots__ = ("_before", "_past", "buckets", "total")

    def __init__(self) -> None:
        self.total = 0
        self.buckets = [0] * BUCKETS
        self._before: list[int] | None = None  # the values before the last `rotate`
        self._past: list[int] | None = None  # all before those

    def observe(self, value: int) -> None:
        self.total += value
        shift = value.bit_length() - 5
        if shift < 0:
            shift = 0
        self.buckets[(shift << 4) + (value >> shift)] += 1

    def observe_many(self, value: int, count: int) -> None:
        """Count a value that occurred several times."""
        self.total += value * count
        shift = max(value.bit_length() - 5, 0)
        self.buckets[(shift << 4) + (value >> shift)] += count

    def rotate(self) -> None:
        """Forget the older half of the values that percentiles are of."""
        before, self._before = self._before, self.buckets
        self.buckets = [0] * BUCKETS
        if before is not None:
            self._past = before if self._past is None else added([self._past, before])

    @property
    def count(self) -> int:
        return sum(sum(part) for part in (self.buckets, self._before, self._past) if part is not None)

    @property
    def recent(self) -> list[int]:
        return self.buckets if self._before is None else added([self.buckets, self._before])

    @property
    def all(self) -> list[int]:
        return self.recent if self._past is None else added([self.recent, self._past])

    def snapshot(self, unit: float = 1.0) -> Snapshot:
        return snapshot_of([self], unit)


def snapshot_of(histograms: Iterable[Histogram], unit: float = 1.0, zeros: int = 0) -> Snapshot:
    """Several histograms as one, with values divided by `unit`. `zeros` are values of 0 that nobody counted:
    a phase that a request did not have."""
    parts = list(histograms)
    everything = added([each.all for each in parts]) if parts else [0] * BUCKETS
    recent = added([each.recent for each in parts]) if parts else [0] * BUCKETS
    if zeros > 0:
        counted = sum(everything)
        # Recent zeros are unknown; there were as many as the share of recent values among the counted ones
        # says.
        recent[0] += zeros if not counted else round(zeros * sum(recent) / counted)
        everything[0] += zeros
    count = sum(everything)
    if not count:
        return EMPTY
    total = sum(each.total for each in parts) / unit
    mean = total / count
    used = [index for index, number in enumerate(everything) if number]
    squares = sum(everything[index] * (middle(index) / unit - mean) ** 2 for index in used)
    return Snapshot(
        count=count,
        sum=total,
        min=middle(used[0]) / unit,
        max=middle(used[-1]) / unit,
        mean=mean,
        deviation=sqrt(squares / count),
        percentiles=tuple(value / unit for value in percentiles(recent, SHARES)),
        recent=sum(recent),
    )


def added(parts: Sequence[Sequence[int]]) -> list[int]:
    if len(parts) == 1:
        return list(parts[0])
    found = list(parts[0])
    for part in parts[1:]:
        found = list(map(add, found, part))
    return found


def percentiles(buckets: Sequence[int], shares: Sequence[float]) -> list[float]:
    """The values that these shares of all values stay below; 0 if there are none."""
    total = sum(buckets)
    if not total:
        return [0.0] * len(shares)
    sums = list(accumulate(buckets))
    found, index = [], 0
    for share in shares:  # they rise
        rank = max(1, ceil(share * total))
        while sums[index] < rank:
            index += 1
        found.append(middle(index))
    return found


def mean(buckets: Sequence[int]) -> float:
    """The mean of the values, wrong by at most what a bucket is wide; 0 if there are none."""
    total = sum(buckets)
    return sum(middle(index) * number for index, number in enumerate(buckets) if number) / max(total, 1)


def middle(index: int) -> float:
    """The middle of a bucket, the inverse of what `observe` computes."""
    if index < 32:
        return float(index)
    shift = (index >> 4) - 1
    return ((index - (shift << 4)) + 0.5) * (1 << shift)
