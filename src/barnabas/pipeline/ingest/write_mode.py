"""How a batch goes into the tables behind its source, and what became of it.

In: the number of a batch, how it merges, which part of raw it replaces. Out: values.
Does not know: rows, tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.pipeline.ingest.results import TableChange
from barnabas.pipeline.spec.model import Merging

RELEASE = "release"
NO_BATCH = -1


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """The part of raw that a replay rewrites, as a condition on the columns of each zone."""

    raw: str
    zone: str
    quarantine: str


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

    @property
    def own_batch(self) -> int:
        """The batch whose rows do not count as duplicates: an interrupted attempt has written them."""
        return NO_BATCH if self.writer else self.batch

    @property
    def adds(self) -> bool:
        """Whether rows are only added: no rows then means no commit."""
        return self.merging is not Merging.REPLACE_ALL and self.replay_range is None
