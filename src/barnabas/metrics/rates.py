"""Rates of meters over 1, 5 and 15 minutes, as Kafka's meters have them: averages that forget exponentially.

In: a count and the time, every five seconds, or when somebody looks. Out: events a second. Between two looks
the rate is taken as constant, so rates are Kafka's as long as somebody looks every five seconds. Does not
know: clocks.
"""

from __future__ import annotations

from math import exp

TICK_S = 5.0
MINUTES = (1, 5, 15)
NAMES = ("OneMinuteRate", "FiveMinuteRate", "FifteenMinuteRate")


class Rates:
    __slots__ = ("_at_s", "_count", "_started_s", "asked_s", "rates")

    def __init__(self, count: float, now_s: float, started_s: float | None = None) -> None:
        """`started_s`: since when the count is counted."""
        self._started_s = now_s if started_s is None else started_s
        self._count = count
        self._at_s = now_s
        self.asked_s = float("-inf")  # when a reader wanted to know them last
        self.rates: list[float] | None = None  # until the first tick

    def tick(self, count: float, now_s: float) -> None:
        passed_s = now_s - self._at_s
        if passed_s < TICK_S:
            return
        rate = (count - self._count) / passed_s
        if self.rates is None:
            self.rates = [rate] * len(MINUTES)
        else:
            for index, minutes in enumerate(MINUTES):
                self.rates[index] += (rate - self.rates[index]) * (1 - exp(-passed_s / (60 * minutes)))
        self._count, self._at_s = count, now_s

    def attributes(self, count: float, now_s: float, unit: float = 1.0) -> dict[str, float]:
        """`unit`: a rate is divided by it, such as nanoseconds a second."""
        rates = self.rates or [0.0] * len(MINUTES)
        passed_s = now_s - self._started_s
        return {
            "MeanRate": count / passed_s / unit if passed_s > 0 else 0.0,
            **{name: rate / unit for name, rate in zip(NAMES, rates, strict=True)},
        }
