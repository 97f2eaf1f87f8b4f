"""Rates of principals: requests and bytes a second, with bursts.

In: a principal, and what it uses. Out: nothing, or ApiError 429 with Retry-After. Principals beyond the bound
of the table share nothing: the one that was idle longest is forgotten, with a full bucket.
Does not know: requests.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from barnabas.quotas.rates import TokenBucket
from barnabas.services.errors import ApiError

PRINCIPALS_MAX = 10_000


class Rates:
    """0 means that a rate is not bounded."""

    def __init__(
        self,
        requests_per_s: float,
        bytes_per_s: float,
        burst_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._requests_per_s = requests_per_s
        self._bytes_per_s = bytes_per_s
        self._burst_ms = int(burst_s * 1000)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[TokenBucket, TokenBucket]] = OrderedDict()

    @property
    def is_bounded(self) -> bool:
        return bool(self._requests_per_s or self._bytes_per_s)

    def enter(self, principal: str) -> Callable[[int], float]:
        """Count a request. The result takes bytes of its body, and returns how many seconds a stream should
        wait before it reads on."""
        now_ms = self._clock() * 1000
        requests, octets = self._buckets_of(principal)
        if self._requests_per_s:
            if requests.refill(self._requests_per_s, now_ms) < 1:
                missing = 1 - requests.tokens
                raise too_many("requests", self._requests_per_s, missing / self._requests_per_s)
            requests.spend(1, self._requests_per_s, now_ms)
        if self._bytes_per_s and (wait_ms := octets.throttle_ms(self._bytes_per_s, now_ms)):
            raise too_many("bytes", self._bytes_per_s, wait_ms / 1000)

        def spend(size: int) -> float:
            if not self._bytes_per_s:
                return 0.0
            now_ms = self._clock() * 1000
            octets.spend(size, self._bytes_per_s, now_ms)
            return octets.throttle_ms(self._bytes_per_s, now_ms) / 1000

        return spend

    def _buckets_of(self, principal: str) -> tuple[TokenBucket, TokenBucket]:
        found = self._buckets.get(principal)
        if found is None:
            found = TokenBucket(1, self._burst_ms), TokenBucket(1, self._burst_ms)
            self._buckets[principal] = found
            if len(self._buckets) > PRINCIPALS_MAX:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(principal)
        return found


def too_many(what: str, rate: float, wait_s: float) -> ApiError:
    return ApiError(
        429,
        429,
        f"HTTP 429 Too Many Requests: {rate:g} {what} a second are allowed to you",
        {"retry-after": str(max(1, math.ceil(wait_s)))},
    )
