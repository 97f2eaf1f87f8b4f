"""Sampling of requests: a share of all, those whose records belong to a sampled trace, never too many.

In: one question for each request, the time. Out: yes or no. The share is met on average, with random gaps, so
that periodic requests are neither always nor never met. Does not know: spans.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from barnabas.broker.tracing.contexts import has_sampled_context

PRODUCE = 0
NEVER = 1 << 62


class Sampling:
    __slots__ = (
        "_budget",
        "_budget_second",
        "_now_s",
        "_per_second_max",
        "_ratio",
        "_rng",
        "_uses_headers",
        "gap",
    )

    def __init__(
        self,
        ratio: float,
        *,
        uses_headers: bool,
        per_second_max: int,
        now_s: Callable[[], float],
        rng: Random | None = None,
    ) -> None:
        self._ratio = ratio
        self._uses_headers = uses_headers
        self._per_second_max = per_second_max
        self._now_s = now_s
        self._rng = rng or Random()
        self._budget = per_second_max
        self._budget_second = int(now_s())
        self.gap = self._next_gap()  # requests until the next one that is traced

    def wants(self, frame: memoryview) -> bool:
        """Whether to trace the request in this frame."""
        self.gap -= 1
        if self.gap < 0:
            self.gap = self._next_gap()
            return self._has_budget()
        return (
            self._uses_headers
            and frame[1] == PRODUCE
            and not frame[0]
            and has_sampled_context(frame)
            and self._has_budget()
        )

    def _next_gap(self) -> int:
        if self._ratio <= 0:
            return NEVER
        return 0 if self._ratio >= 1 else round(self._rng.expovariate(self._ratio / (1 - self._ratio)))

    def _has_budget(self) -> bool:
        second = int(self._now_s())
        if second != self._budget_second:
            self._budget_second, self._budget = second, self._per_second_max
        self._budget -= 1
        return self._budget >= 0
