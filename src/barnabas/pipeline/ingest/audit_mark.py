"""How far the audit has counted a source: kept in raw's commits, so that a restart counts exactly the rest.

In: the last batch whose counts are stored, duplicates of batches behind it. Out: a part of raw's checkpoint,
and back. Duplicates are in no table, so they would be lost with the process. Does not know: how batches are
counted, tiers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class Duplicates(NamedTuple):
    """Rows of a batch that a staging table does not get, because it has their keys."""

    batch: int
    staging: str
    topic: str
    partition: int
    bucket: int
    rows: int


@dataclass(frozen=True, slots=True)
class AuditMark:
    counted: int  # batches up to this one are counted
    duplicates: tuple[Duplicates, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"counted": self.counted, "duplicates": [list(each) for each in self.duplicates]}

    @classmethod
    def of_json(cls, found: Any) -> AuditMark | None:
        """None in checkpoints of pipelines that did not count."""
        if not found:
            return None
        return cls(found["counted"], tuple(Duplicates(*each) for each in found["duplicates"]))
