"""Counts of the metrics that clients push (KIP-714), of all clients together.

In: requests, and what receivers did. Out: counters and a histogram. Kafka counts throttles and exports for
each client, which would be thousands of series. Does not know: names of metrics.
"""

from __future__ import annotations

from barnabas.metrics import Histogram


class TelemetryStats:
    __slots__ = ("errors", "exports", "throttled", "unknown_subscriptions")

    def __init__(self) -> None:
        self.unknown_subscriptions = self.throttled = self.errors = 0
        self.exports = Histogram()  # nanoseconds until all receivers had a push
