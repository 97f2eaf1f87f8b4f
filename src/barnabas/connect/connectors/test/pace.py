"""How many records of a source are due: a throughput in records a second."""

from __future__ import annotations

import time
from threading import Event

BATCH_MAX = 5000


class Pace:
    """Counts records from the start; below 0 there is no limit."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._began = time.monotonic()
        self._given = 0

    def due(self, stopping: Event, wait_s: float) -> int:
        """Wait at most `wait_s` until a record is due; how many are, at most BATCH_MAX."""
        if self._per_second < 0:
            return BATCH_MAX
        if self._per_second == 0:
            stopping.wait(wait_s)
            return 0
        missing_s = (self._given + 1) / self._per_second - (time.monotonic() - self._began)
        if missing_s > 0:
            stopping.wait(min(missing_s, wait_s))
        due = int((time.monotonic() - self._began) * self._per_second) - self._given
        return max(0, min(due, BATCH_MAX))

    def gave(self, count: int) -> None:
        self._given += count
