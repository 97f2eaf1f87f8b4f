"""How a batch goes into the tables behind its source, and what became of it.

In: the number of a batch, how it merges, which part of raw it replaces. Out: values.
Does not know: what rows mean, tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from barnabas.pipeline.ingest.results import TableChange
from barnabas.pipeline.lake.tables import TableName
from barnabas.pipeline.spec.model import Merging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RELEASE = "release"
NO_BATCH = -1
TIME = "%Y-%m-%d %H:%M:%S.%f"


def literal(at: datetime) -> str:
    """A time as a literal of SQL."""
    return f"TIMESTAMP '{at.astimezone(UTC).strftime(TIME)}'"


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """The part of raw that a replay rewrites: the rows whose `column` is from `first` to before `end`.

    It is rewritten chunk by chunk: `batches` are those of the present chunk, from the first to before the
    last. Raw may have forgotten rows. `held` has the coordinates of the rows that it still has in the whole
    part, `held_here` those of the chunk; rows of the other zones without a row in raw stay as they are.
    `with_forgotten` names the tables that have such rows; None means that any may."""

    column: str  # of raw: batch or timestamp
    first: str  # literals of SQL
    end: str
    held: DataFrame | None = None
    batches: tuple[int, int] | None = None
    held_here: DataFrame | None = None
    with_forgotten: frozenset[TableName] | None = None

    def _where(self, prefix: str, *, to_end: bool = False) -> str:
        column = f"{prefix}{self.column}"
        found = f"{column} >= {self.first} AND {column} < {self.end}"
        if self.batches is not None:
            first, end = self.batches
            found += f" AND {prefix}batch >= {first}"
            found += "" if to_end else f" AND {prefix}batch < {end}"
        return found

    @property
    def raw(self) -> str:
        """The condition on rows of raw and of the quarantine."""
        return self._where("")

    @property
    def zone(self) -> str:
        """The condition on rows of staging and trusted tables."""
        return self._where("_")

    @property
    def remaining(self) -> str:
        """As `zone`, for this chunk and all that follow: their rows will be replaced."""
        return self._where("_", to_end=True)

    def clamped(self, first: str, held: DataFrame) -> ReplayRange:
        """The range from the first row that raw holds."""
        return replace(self, first=first, held=held)

    def chunk(self, batches: tuple[int, int], held_here: DataFrame) -> ReplayRange:
        return replace(self, batches=batches, held_here=held_here)


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
    recovers: bool = False  # the batch was interrupted: tables may have some of its rows

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
