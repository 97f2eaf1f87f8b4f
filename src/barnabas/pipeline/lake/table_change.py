"""A table that changed.

Out: a value for the timeline, for views and for people. Does not know: how rows were written.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.pipeline.lake.tables import TableName


@dataclass(frozen=True, slots=True)
class TableChange:
    """A table that changed, its new version, and how many rows were written."""

    table: TableName
    version: int
    rows: int
