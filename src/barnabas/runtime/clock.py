"""The clock port: the only way to learn the time. A simulation puts its own in place of it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall clock time in milliseconds, as records carry it."""

    def steady_ms(self) -> int:
        """Milliseconds since some moment: nobody can set this one."""

    def work_s(self) -> float:
        """Seconds to measure work with that takes a part of a millisecond. Simulated work takes as long as
        somebody looks at this."""


class SystemClock:
    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def work_s(self) -> float:
        return time.perf_counter()
