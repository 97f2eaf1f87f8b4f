"""How far the audit has counted a source: kept in raw's commits, so that a restart counts exactly the rest.

In: the last batch whose counts are stored, duplicates of batches behind it. Out: a part of raw's checkpoint,
and back. Duplicates are in no table, so they would be lost with the process. Does not know: how batches are
counted, tiers.
"""

from __future__ import annotations

from collections.abc import Iterable
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


class WaitingDuplicates:
    """Groups of duplicates that no count message has yet: at most so many, however long brokers are away."""

    def __init__(self, groups_max: int) -> None:
        self._groups_max = groups_max
        self.groups: tuple[Duplicates, ...] = ()  # by batch

    def add(self, groups: Iterable[Duplicates]) -> int:
        """Add groups; those of the oldest batches are dropped where there are too many. How many were."""
        some = sorted((*self.groups, *groups), key=_batch)
        dropped = max(0, len(some) - self._groups_max)
        self.groups = tuple(some[dropped:])
        return dropped

    def drop(self, batch: int, staging: str) -> None:
        self.groups = tuple(each for each in self.groups if each[:2] != (batch, staging))

    def drop_before(self, batch: int) -> None:
        self.groups = tuple(each for each in self.groups if each.batch >= batch)


def _batch(group: Duplicates) -> int:
    return group.batch


@dataclass(frozen=True, slots=True)
class AuditMark:
    counted: int  # batches up to this one are counted
    duplicates: tuple[Duplicates, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"counted": self.counted, "duplicates": [list(each) for each in self.duplicates]}

    @classmethod
    def of_json(cls, found: Any) -> AuditMark | None:
        """Read a mark; None in checkpoints of pipelines that did not count."""
        if not found:
            return None
        return cls(found["counted"], tuple(Duplicates(*each) for each in found["duplicates"]))
