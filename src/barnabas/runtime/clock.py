"""The clock port: the only source of time. A simulation replaces it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall clock time in milliseconds, as in record timestamps."""

    def steady_ms(self) -> int:
        """Monotonic time in milliseconds."""

    def work_s(self) -> float:
        """Monotonic time in seconds, to measure work of less than a millisecond. A simulated clock advances
        with every call."""


class SystemClock:
    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def work_s(self) -> float:
        return time.perf_counter()
