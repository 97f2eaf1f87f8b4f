"""Measurements of fetches: those that wait, those that waited as long as they may, reads from the disk.

In: calls of fetches. Out: counters and a histogram (nanoseconds), for metrics. Does not know: names of
metrics.
"""

from __future__ import annotations

from barnabas.metrics import Histogram


class FetchStats:
    __slots__ = ("cold_fetches", "cold_reads", "expired", "waiting")

    def __init__(self) -> None:
        self.waiting = [0, 0]  # of consumers, of followers
        self.expired = [0, 0]
        self.cold_fetches = 0  # whose records were not in the page cache
        self.cold_reads = Histogram()  # the time of a thread that reads them
