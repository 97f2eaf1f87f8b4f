"""How a batch goes into the tables behind its source, and what became of it.

In: the number of a batch, how it merges, which part of raw it replaces. Out: values.
Does not know: what rows mean, tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from barnabas.pipeline.ingest.results import TableChange
from barnabas.pipeline.spec.model import Merging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RELEASE = "release"
NO_BATCH = -1


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """The part of raw that a replay rewrites: the rows whose `column` is from `first` to before `end`.

    Raw may have forgotten rows of this part. `held` has the coordinates of the rows that it still has; rows
    of the other zones without a row in raw stay as they are."""

    column: str  # of raw: batch or timestamp
    first: str  # literals of SQL
    end: str
    held: DataFrame | None = None

    @property
    def raw(self) -> str:
        return f"{self.column} >= {self.first} AND {self.column} < {self.end}"

    @property
    def zone(self) -> str:
        return f"_{self.column} >= {self.first} AND _{self.column} < {self.end}"

    def clamped(self, first: str, held: DataFrame) -> ReplayRange:
        """The range from the first row that raw holds."""
        return replace(self, first=first, held=held)


@dataclass(slots=True)
class WriteResult:
    staged: int = 0
    duplicates: int = 0
    malformed: int = 0
    accepted: int = 0
    quarantined: int = 0
    late: int = 0
    changed: list[TableChange] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WriteMode:
    """How rows go into tables."""

    batch: int
    merging: Merging
    writer: str = ""
    replay_range: ReplayRange | None = None
    only: str = ""  # the only trusted table that is written

    @property
    def is_release(self) -> bool:
        return self.writer.startswith(RELEASE)

    @property
    def own_batch(self) -> int:
        """The batch whose rows do not count as duplicates: an interrupted attempt has written them."""
        return NO_BATCH if self.writer else self.batch

    @property
    def adds(self) -> bool:
        """Whether rows are only added: no rows then means no commit."""
        return self.merging is not Merging.REPLACE_ALL and self.replay_range is None
