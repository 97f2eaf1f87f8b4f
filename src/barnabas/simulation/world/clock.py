"""The clock port on virtual time, with a skew for each machine."""

from __future__ import annotations

from collections.abc import Callable

EPOCH_MS = 1_700_000_000_000  # the start time of every history
STEP_S = 0.0003  # simulated duration of a step of long work, so that a piece has only a few steps


class SimulatedClock:
    """Changing `skew_ms` while the machine runs makes its clock jump."""

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
