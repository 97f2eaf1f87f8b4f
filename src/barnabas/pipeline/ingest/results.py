"""What a batch, a release or a backfill did: values for timelines, views and people.

In: counts. Out: values. Does not know: who counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from barnabas.pipeline.lake.tables import Table, Zone
from barnabas.pipeline.sources.source_slice import Position

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Changed:
    """A table that changed, its version now, and how many rows came."""

    table: Table
    version: int
    rows: int


@dataclass(frozen=True, slots=True)
class Added:
    """A commit that added rows to a table and changed none, and what these rows are to the views over it.

    `app` and `number` are the commit's transaction id: by them one can see that `version` is this commit."""

    table: Table
    version: int
    app: str
    number: int
    views: Mapping[str, pa.Table]


class Follower(Protocol):
    """Who wants to know what a batch adds as soon as it is there, and not read it again from the table."""

    def increments(self, table: Table, rows: DataFrame) -> Mapping[str, pa.Table]:
        """What rows that are being added are to each view; called beside the commit, before its end."""
        ...

    def added(self, added: Added) -> None:
        """They are there."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One micro-batch of a source on its way through the zones."""

    pipeline: str
    source: str
    batch: int
    rows_in: int
    malformed: int = 0
    duplicates: int = 0
    staged: int = 0
    accepted: int = 0
    quarantined: int = 0
    late: int = 0
    bytes: int = 0
    started: datetime
    ended: datetime
    position: Position | None = None
    changed: tuple[Changed, ...] = ()
    newest_event_time: datetime | None = None
    recovered: bool = False
    # Seconds spent on each part of the way, for those who make it faster.
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def trusted(self) -> tuple[Changed, ...]:
        return tuple(each for each in self.changed if each.table.zone is Zone.TRUSTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """What a backfill, replay or release did, and which views depend on it, in order."""

    what: str
    rows_in: int = 0
    staged: int = 0
    accepted: int = 0
    quarantined: int = 0
    removed: int = 0
    changed: tuple[Changed, ...] = ()
    refined: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
