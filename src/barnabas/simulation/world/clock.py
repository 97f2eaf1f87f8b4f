"""The clock port on virtual time, and how far a machine's clock is off."""

from __future__ import annotations

from collections.abc import Callable

EPOCH_MS = 1_700_000_000_000  # when every history begins
STEP_S = 0.0003  # what a step of long work is taken to last: few of them fit into a piece


class SimulatedClock:
    """`skew_ms` may be changed while the machine runs: its clock jumps."""

    __slots__ = ("_seconds", "_steps", "skew_ms")

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._steps = 0
        self.skew_ms = 0

    def now_ms(self) -> int:
        return EPOCH_MS + self.steady_ms() + self.skew_ms

    def steady_ms(self) -> int:
        return int(self._seconds() * 1000)

    def work_s(self) -> float:
        self._steps += 1
        return self._steps * STEP_S
