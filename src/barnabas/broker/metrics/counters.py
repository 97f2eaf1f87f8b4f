"""Counters for the hot path: slotted objects whose attributes are incremented where events happen.

In: one call for each request, `+=` for bytes and messages. Out: totals, and percentiles from a histogram
whose buckets are an eighth of a power of two wide, so that a percentile is wrong by at most an eighth.
Does not know: names, labels, scrapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import ceil

# 16 buckets for the first 16 ns, then 8 for each doubling: 63 bits of nanoseconds are 292 years.
BUCKETS = 512


class ApiMetrics:
    """The number of requests to an API, and how long they took."""

    __slots__ = ("buckets", "earlier_buckets", "earlier_count", "total_ns")

    def __init__(self) -> None:
        self.total_ns = 0
        self.buckets = [0] * BUCKETS
        self.earlier_buckets = [0] * BUCKETS  # the histogram before the last `rotate`
        self.earlier_count = 0  # requests that are in neither histogram any more

    def observe(self, duration_ns: int) -> None:
        self.total_ns += duration_ns
        shift = duration_ns.bit_length() - 4
        if shift < 0:
            shift = 0
        self.buckets[(shift << 3) + (duration_ns >> shift)] += 1

    def observe_many(self, duration_ns: int, count: int) -> None:
        """Count several requests that were responded to together."""
        self.total_ns += duration_ns * count
        shift = max(duration_ns.bit_length() - 4, 0)
        self.buckets[(shift << 3) + (duration_ns >> shift)] += count

    @property
    def count(self) -> int:
        return self.earlier_count + sum(self.earlier_buckets) + sum(self.buckets)

    def rotate(self) -> None:
        """Drop the older histogram, so that percentiles describe recent requests."""
        self.earlier_count += sum(self.earlier_buckets)
        self.earlier_buckets = self.buckets
        self.buckets = [0] * BUCKETS


def recent_buckets(apis: Sequence[ApiMetrics]) -> list[int]:
    """Combine the recent histograms of several counters."""
    return [
        sum(row) for row in zip(*(b for api in apis for b in (api.buckets, api.earlier_buckets)), strict=True)
    ]


def percentiles_ns(buckets: Sequence[int], shares: Sequence[float]) -> list[float]:
    """The durations that these shares of all requests stay below; 0 if there were none."""
    total = sum(buckets)
    if total == 0:
        return [0.0] * len(shares)
    sums = list(accumulate(buckets))
    found = []
    for share in shares:
        rank = max(1, ceil(share * total))
        index = next(position for position, below in enumerate(sums) if below >= rank)
        found.append(middle_ns(index))
    return found


def middle_ns(index: int) -> float:
    """The middle of a bucket, the inverse of what `observe` computes."""
    if index < 16:
        return float(index)
    shift = (index >> 3) - 1
    return ((index - (shift << 3)) + 0.5) * (1 << shift)


class TopicMetrics:
    """Traffic of one topic on this broker."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetch_requests",
        "failed_produce_requests",
        "failed_share_acknowledgement_requests",
        "failed_share_fetch_requests",
        "fetch_requests",
        "messages_in",
        "produce_requests",
        "replication_bytes_in",
        "replication_bytes_out",
        "share_acknowledgement_requests",
        "share_fetch_requests",
    )

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.failed_fetch_requests = 0
        self.failed_produce_requests = 0
        self.failed_share_acknowledgement_requests = 0
        self.failed_share_fetch_requests = 0
        self.fetch_requests = 0
        self.messages_in = 0
        self.produce_requests = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.share_acknowledgement_requests = 0
        self.share_fetch_requests = 0

    def add(self, other: TopicMetrics) -> None:
        for name in TopicMetrics.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
