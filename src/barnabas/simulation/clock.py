"""The clock port on virtual time, and how far a machine's clock is off."""

from __future__ import annotations

from collections.abc import Callable

EPOCH_MS = 1_700_000_000_000  # when every history begins


class SimulatedClock:
    """`skew_ms` may be changed while the machine runs: its clock jumps."""

    __slots__ = ("_seconds", "skew_ms")

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self.skew_ms = 0

    def now_ms(self) -> int:
        return EPOCH_MS + self.steady_ms() + self.skew_ms

    def steady_ms(self) -> int:
        return int(self._seconds() * 1000)
