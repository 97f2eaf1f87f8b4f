"""The size of a query's batches: about a second of work, however much a record costs.

In: the records and the seconds of each batch. Out: how many records the next one may have. Records over
columns cost a microsecond, those of a user's function a millisecond; a batch whose commit is minutes away
delays all its results, and a failure repeats it. Pure. Does not know: the clock.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST = 50_000
RECORDS_MIN = 1_000
SECONDS_WANTED = 1.0
SECONDS_MAX = 2.0


@dataclass(slots=True)
class Pace:
    records_max: int
    limit: int = FIRST

    def __post_init__(self) -> None:
        self.limit = min(self.limit, self.records_max)

    def take(self, records: int, seconds: float) -> None:
        """A batch has ended. A full one that was quick doubles the next, a slow one makes it shorter."""
        if seconds > SECONDS_MAX:
            wanted = int(records * SECONDS_WANTED / seconds)
            self.limit = min(max(wanted, RECORDS_MIN), self.limit)
        elif seconds < SECONDS_WANTED and 2 * records > self.limit:
            self.limit = min(2 * self.limit, self.records_max)
