"""Mean and maximum of recent values, for readers that come now and then.

In: values with the time at which they came, or sums of many. Out: mean, smallest and largest value of the
last 30 to 60 seconds; None where there were none. Does not know: clocks, what is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

HALF_S = 30.0


@dataclass(slots=True)
class Values:
    total: float = 0.0
    count: float = 0
    smallest: float = float("inf")
    largest: float = float("-inf")

    def add(self, other: Values) -> None:
        self.total += other.total
        self.count += other.count
        self.smallest = min(self.smallest, other.smallest)
        self.largest = max(self.largest, other.largest)


class Recent:
    """Values of this half of the window and of the one before it."""

    __slots__ = ("_before", "_now", "_since_s")

    def __init__(self) -> None:
        self._now, self._before = Values(), Values()
        self._since_s = float("-inf")

    def add(self, values: Values, now_s: float) -> None:
        self._turn(now_s)
        self._now.add(values)

    def observe(self, value: float, now_s: float) -> None:
        self.add(Values(value, 1, value, value), now_s)

    def mean(self, now_s: float) -> float | None:
        found = self._found(now_s)
        return found.total / found.count if found.count else None

    def smallest(self, now_s: float) -> float | None:
        found = self._found(now_s)
        return found.smallest if found.count else None

    def largest(self, now_s: float) -> float | None:
        found = self._found(now_s)
        return found.largest if found.count else None

    def _found(self, now_s: float) -> Values:
        self._turn(now_s)
        found = Values()
        found.add(self._before)
        found.add(self._now)
        return found

    def _turn(self, now_s: float) -> None:
        passed_s = now_s - self._since_s
        if passed_s >= HALF_S:
            self._before = self._now if passed_s < 2 * HALF_S else Values()
            self._now, self._since_s = Values(), now_s
