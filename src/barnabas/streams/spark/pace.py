"""The size of a query's batches: about a second of work, however much a record costs.

In: the records and the seconds of each batch. Out: how many records the next one may have. Records over
columns cost a microsecond, those of a user's function a millisecond; a batch whose commit is minutes away
delays all its results, and a failure repeats it. Pure. Does not know: the clock.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST = 25_000
RECORDS_MIN = 1_000
SECONDS_WANTED = 1.0
SECONDS_MAX = 2.0
SHRINKS_IN_A_ROW = 2  # a single slow batch may have waited for a broker, or compiled its loops


@dataclass(slots=True)
class Pace:
    records_max: int
    limit: int = FIRST
    slow: int = 0  # full batches in a row that took too long

    def __post_init__(self) -> None:
        self.limit = min(self.limit, self.records_max)

    def batch_ended(self, records: int, seconds: float) -> None:
        """A batch has ended. Only a full one tells what a record costs: most of a small one's time has other
        reasons. Quick ones double the next one; after two slow ones in a row it has half."""
        if 2 * records <= self.limit:
            return
        self.slow = self.slow + 1 if seconds > SECONDS_MAX else 0
        if self.slow >= SHRINKS_IN_A_ROW:
            self.limit = max(self.limit // 2, min(RECORDS_MIN, self.records_max))
        elif seconds < SECONDS_WANTED:
            self.limit = min(2 * self.limit, self.records_max)
