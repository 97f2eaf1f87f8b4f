"""Rates over a sliding window of samples, token buckets, and throttle times.

In: values with their time, in milliseconds of a monotonic clock. Out: the rate per second or the tokens left,
and the time until the bound is kept again if nothing more is recorded. The window consists of whole samples,
and a new sample counts as nearly full. So a burst may use up the window's allowance and no more: with 11
samples of a second, ten seconds' worth.
Does not know: what is measured.
"""

from __future__ import annotations


class WindowedRate:
    """Kafka's measure of byte rates, request time and connections."""

    __slots__ = ("_samples", "count", "last_ms", "sample_ms", "total")

    def __init__(self, count: int, sample_ms: int) -> None:
        self.count = count
        self.sample_ms = sample_ms
        self.total = 0.0
        self.last_ms = float("-inf")
        self._samples: list[list[float]] = []  # start, sum, last recorded; oldest first, at most count + 1

    def record(self, value: float, now_ms: float) -> None:
        samples = self._samples
        if not samples or now_ms - samples[-1][0] >= self.sample_ms:
            if len(samples) > self.count:
                self.total -= samples.pop(0)[1]
            samples.append([now_ms, 0.0, now_ms])
        newest = samples[-1]
        newest[1] += value
        newest[2] = self.last_ms = now_ms
        self.total += value

    def window_ms(self, now_ms: float) -> float:
        """The time that the samples cover: at least all but one of them."""
        samples = self._samples
        expired = now_ms - self.count * self.sample_ms
        while samples and samples[0][2] <= expired:
            self.total -= samples.pop(0)[1]
        if not samples:
            self.total = 0.0  # removes rounding errors
            return (self.count - 1) * self.sample_ms or self.sample_ms
        elapsed = now_ms - samples[0][0]
        missing = self.count - 1 - int(elapsed // self.sample_ms)
        window = elapsed + missing * self.sample_ms if missing > 0 else elapsed
        return window or self.sample_ms

    def rate(self, now_ms: float) -> float:
        """The rate per second."""
        window_ms = self.window_ms(now_ms)
        return self.total * 1000 / window_ms

    def excess_ms(self, bound: float, now_ms: float) -> float:
        """The idle time until the rate is at the bound; 0 if it is not above it."""
        window_ms = self.window_ms(now_ms)
        excess = self.total * 1000 / window_ms - bound
        return excess / bound * window_ms if excess > 0 else 0.0


class SimpleRate(WindowedRate):
    """Kafka's measure of replication: the rate since the oldest sample began. Idle time gives no credit. The
    first sample counts as a whole one."""

    __slots__ = ()

    def window_ms(self, now_ms: float) -> float:
        super().window_ms(now_ms)  # drops expired samples
        return max(now_ms - self._samples[0][0], self.sample_ms) if self._samples else self.sample_ms


class QuotaRate:
    """A windowed rate with a bound. A client that exceeds the bound is paced until it has kept the bound for
    a whole window. Without pacing, an expired sample would return a whole burst at once, and a greedy client
    could get up to a sixth too much in a minute.
    """

    __slots__ = ("_budget", "_paced_at_ms", "_throttled_until_ms", "rate")

    def __init__(self, count: int, sample_ms: int) -> None:
        self.rate = WindowedRate(count, sample_ms)
        self._budget = 0.0  # what a paced client may use at once; negative: debt
        self._paced_at_ms: float | None = None  # when the budget was updated; None: not paced
        self._throttled_until_ms = 0.0

    @property
    def is_paced(self) -> bool:
        return self._paced_at_ms is not None

    def record(self, value: float, bound: float, now_ms: float) -> int:
        """Record a value. Returns the throttle time."""
        self._refill(bound, now_ms)
        self.rate.record(value, now_ms)
        self._budget -= value
        return self._throttle_ms(max(self.rate.excess_ms(bound, now_ms), self._debt_ms(bound)), bound, now_ms)

    def try_record(self, value: float, bound: float, now_ms: float) -> int:
        """Record a value if the bound allows it now, and return 0. Otherwise record nothing and return the
        wait. A value larger than a whole window allows is accepted if nothing else was recorded, and the
        client waits afterwards; in Kafka it would never be accepted.
        """
        self._refill(bound, now_ms)
        wait_ms = self._debt_ms(bound)
        if not wait_ms and not self.rate.rate(now_ms):
            self.rate.record(value, now_ms)
            owed_ms = self.rate.excess_ms(bound, now_ms)
            self._budget -= value
            if owed_ms:
                self._paced_at_ms, self._budget = now_ms, -owed_ms * bound / 1000
                self._throttled_until_ms = now_ms + owed_ms
            return 0
        self.rate.record(value, now_ms)
        self._budget -= value
        # At most a window: after that, no other value is in the window.
        longest_ms = self.rate.count * self.rate.sample_ms
        wait_ms = max(wait_ms, min(self.rate.excess_ms(bound, now_ms), longest_ms))
        if wait_ms:
            self.rate.record(-value, now_ms)
            self._budget += value
        return self._throttle_ms(wait_ms, bound, now_ms)

    def undo(self, value: float, now_ms: float) -> None:
        self.rate.record(-value, now_ms)
        self._budget += value

    def _refill(self, bound: float, now_ms: float) -> None:
        if self._paced_at_ms is None:
            self._budget = 0.0
            return
        burst = bound * self.rate.sample_ms / 1000
        self._budget = min(burst, self._budget + bound * (now_ms - self._paced_at_ms) / 1000)
        self._paced_at_ms = now_ms

    def _debt_ms(self, bound: float) -> float:
        if self._paced_at_ms is None or self._budget >= 0:
            return 0.0
        return -self._budget / bound * 1000

    def _throttle_ms(self, wait_ms: float, bound: float, now_ms: float) -> int:
        if wait_ms > 0:
            if self._paced_at_ms is None:
                self._paced_at_ms, self._budget = now_ms, 0.0
            self._throttled_until_ms = now_ms + wait_ms
            return max(1, round(wait_ms))
        window_ms = self.rate.count * self.rate.sample_ms
        if self._paced_at_ms is not None and now_ms - self._throttled_until_ms > window_ms:
            self._paced_at_ms = None
        return 0


class TokenBucket:
    """Kafka's measure of controller mutations (KIP-599): bursts up to a window's worth, then the rate."""

    __slots__ = ("last_ms", "tokens", "window_ms")

    def __init__(self, count: int, sample_ms: int) -> None:
        self.window_ms = count * sample_ms
        self.tokens = float("inf")  # full, whatever the rate
        self.last_ms = float("-inf")

    def refill(self, rate: float, now_ms: float) -> float:
        """Add the tokens that are due. Returns the current number."""
        burst = rate * self.window_ms / 1000
        if self.tokens >= burst or self.last_ms == float("-inf"):
            self.tokens = burst
        else:
            self.tokens = min(burst, self.tokens + rate * (now_ms - self.last_ms) / 1000)
        self.last_ms = now_ms
        return self.tokens

    def spend(self, value: float, rate: float, now_ms: float) -> None:
        """Spend tokens. The number may become negative; then the next request waits."""
        self.tokens = self.refill(rate, now_ms) - value

    def throttle_ms(self, rate: float, now_ms: float) -> int:
        tokens = self.refill(rate, now_ms)
        return round(-tokens / rate * 1000) if tokens < 0 else 0
