"""Results of a batch, a release or a backfill: values for the timeline, for views and for people.

In: counts. Out: values. Does not know: how rows were written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from barnabas.pipeline.lake.table_change import TableChange
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.sources.source_slice import Position

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


__all__ = ["AddedRows", "BatchResult", "CommitListener", "RewriteResult", "TableChange"]


@dataclass(frozen=True, slots=True)
class AddedRows:
    """A commit that only added rows to a table, and what these rows add to the views over it.

    `app` and `number` are the commit's transaction id. They prove that `version` is this commit."""

    table: TableName
    version: int
    app: str
    number: int
    views: Mapping[str, pa.Table]


class CommitListener(Protocol):
    """Hears of commits as they happen, so that it need not read the rows from the table again."""

    def increments(self, table: TableName, rows: DataFrame) -> Mapping[str, pa.Table]:
        """Additions of rows to each view; called while the commit is being made."""
        ...

    def added(self, added: AddedRows) -> None:
        """The commit is done."""
        ...


class DuplicateListener(Protocol):
    """Hears of rows that a staging table does not get, because it has their keys."""

    def duplicates(self, batch: int, staging: str, rows: DataFrame) -> None:
        """Called while the batch is being written."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """Result of one batch of a source in the zones."""

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
    changed: tuple[TableChange, ...] = ()
    newest_event_time: datetime | None = None
    recovered: bool = False
    # Seconds spent on each step.
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def trusted(self) -> tuple[TableChange, ...]:
        return tuple(each for each in self.changed if each.table.zone is Zone.TRUSTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteResult:
    """Result of a backfill, replay or release, and the refined tables and views that depend on it, in
    order."""

    what: str
    rows_in: int = 0
    staged: int = 0
    accepted: int = 0
    quarantined: int = 0
    removed: int = 0
    changed: tuple[TableChange, ...] = ()
    refined: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
