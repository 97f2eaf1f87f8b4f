"""Backoff: how long to wait before something that failed is tried again. Each failure doubles the delay.

In: how long the attempt lived. Out: seconds. After a long healthy life the next failure counts as the first.
Does not know: the clock.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST_S = 1.0
MOST_S = 60.0
HEALTHY_S = 60.0


@dataclass(slots=True)
class Backoff:
    first_s: float = FIRST_S
    most_s: float = MOST_S
    healthy_s: float = HEALTHY_S
    failures: int = 0

    def failed(self, lived_s: float) -> float:
        """Note a failure after `lived_s` seconds; how long to wait now."""
        self.failures = 1 if lived_s >= self.healthy_s else self.failures + 1
        return self.delay_s

    @property
    def delay_s(self) -> float:
        if self.failures == 0:
            return 0.0
        return min(self.most_s, self.first_s * 2.0 ** min(self.failures - 1, 32))

    def succeeded(self) -> None:
        self.failures = 0
