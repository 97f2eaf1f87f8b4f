"""The mean of recent values, as Kafka's `Avg` has it: of two samples of 30 s, which are forgotten whole.

In: values with their time, in milliseconds of a monotonic clock. Out: their mean; 0 without recent values,
where Kafka has NaN. Does not know: what is measured.
"""

from __future__ import annotations

SAMPLE_MS = 30_000
SAMPLES = 2


class RecentMean:
    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: list[tuple[int, float, int]] = []  # number of the sample, sum, count; oldest first

    def record(self, value: float, now_ms: float) -> None:
        self._forget(now_ms)
        number, total, count = int(now_ms // SAMPLE_MS), 0.0, 0
        if self._samples and self._samples[-1][0] == number:
            _, total, count = self._samples.pop()
        self._samples.append((number, total + value, count + 1))

    def mean(self, now_ms: float) -> float:
        self._forget(now_ms)
        count = sum(count for _, _, count in self._samples)
        return sum(total for _, total, _ in self._samples) / count if count else 0.0

    def _forget(self, now_ms: float) -> None:
        oldest = now_ms // SAMPLE_MS - SAMPLES + 1
        while self._samples and self._samples[0][0] < oldest:
            self._samples.pop(0)
