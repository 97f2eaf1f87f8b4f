"""Counters of share groups at the leaders of partitions, beside those of topics.

In: events. Out: totals. Does not know: how metrics are shown.
"""

from __future__ import annotations

from barnabas.metrics import Histogram

NS_A_SECOND = 1_000_000_000
RENEW = 4


class ShareMetrics:
    __slots__ = "acknowledged", "expired_fetches", "loads"

    def __init__(self) -> None:
        self.acknowledged = [0] * (RENEW + 1)  # records, by type of acknowledgement
        self.loads = Histogram()  # PartitionLoadTimeMs
        self.expired_fetches = 0  # fetches that waited as long as they may

    def loaded(self, seconds: float) -> None:
        self.loads.observe(int(seconds * NS_A_SECOND))
