"""How many rebalances a worker has seen, and how long they took. Does not know: groups, metrics' names."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(slots=True)
class Rebalances:
    """From the moment the worker gives up its seat until it has the next assignment."""

    completed: int = 0
    total_ms: float = 0.0
    highest_ms: float = 0.0
    _began_s: float | None = None
    _ended_s: float | None = None

    @property
    def is_running(self) -> bool:
        return self._began_s is not None

    @property
    def mean_ms(self) -> float:
        return self.total_ms / self.completed if self.completed else 0.0

    @property
    def since_last_ms(self) -> float:
        return 0.0 if self._ended_s is None else (time.monotonic() - self._ended_s) * 1000

    def began(self) -> None:
        self._began_s = time.monotonic()

    def ended(self) -> None:
        now = time.monotonic()
        took_ms = 0.0 if self._began_s is None else (now - self._began_s) * 1000
        self.completed += 1
        self.total_ms += took_ms
        self.highest_ms = max(self.highest_ms, took_ms)
        self._began_s, self._ended_s = None, now
