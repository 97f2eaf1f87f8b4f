"""Bounds of all produce requests of v3 together: records and bytes a second.

In: records. Out: nothing, or ApiError 429 with the code of the limit. Does not know: who produces; rates of
single principals belong to the frame.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from barnabas.quotas.rates import TokenBucket
from barnabas.rest.kafka_errors import refusal

RECORDS, BYTES = 429001, 429003
BURST_MS = 1_000


class ProduceRates:
    """0 stands for no bound."""

    def __init__(
        self,
        records_per_s: float = 0,
        bytes_per_s: float = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = [
            (TokenBucket(1, BURST_MS), rate, code, word)
            for rate, code, word in ((records_per_s, RECORDS, "records"), (bytes_per_s, BYTES, "bytes"))
            if rate
        ]
        self._clock = clock

    def spend(self, size_bytes: int) -> None:
        """Count a record, unless one of the rates is used up."""
        if not self._limits:
            return
        now_ms = self._clock() * 1000
        for bucket, rate, code, word in self._limits:
            if bucket.refill(rate, now_ms) <= 0:
                raise refusal(429, code, f"The proxy takes {rate:g} {word} a second; try again later.")
        for bucket, rate, code, _ in self._limits:
            bucket.spend(1 if code == RECORDS else size_bytes, rate, now_ms)
