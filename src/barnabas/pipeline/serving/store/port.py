"""The port of a store: it accepts parts (`views.parts.Parts`) and answers queries about the merged views.

In: parts, queries, SQL. Out: `Answer`s with their freshness. One process owns a store. Does not know: HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import pyarrow as pa

from barnabas.pipeline.serving.store.query import Query
from barnabas.pipeline.views.layout import Column
from barnabas.pipeline.views.parts import Parts, TableVersion, ViewState

KEEP_HORIZONS = 3


class UnknownView(LookupError):
    """No such view; the message names those that exist."""


class StoreError(Exception):
    """The store cannot be opened or used; the message says which and why, without passwords."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of SQL statements, and the size of an embedded store: beyond its memory it uses files in
    `temp_folder` (empty: beside the store)."""

    statement_ms_max: int = 10_000
    rows_max: int = 100_000
    sql_chars_max: int = 20_000
    memory_bytes_max: int = 1 << 30
    threads: int = 0  # 0: one for each core
    temp_folder: str = ""
    temp_bytes_max: int = 64 << 30


@dataclass(frozen=True, slots=True)
class Freshness:
    """How fresh an answer is. It includes the view's table up to `position` and was complete at
    `complete_at`.

    The batch layer has computed up to `horizon`, the speed layer the rest."""

    view: str
    horizon: TableVersion
    position: TableVersion
    complete_at: datetime


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows, and the state they were read from. `is_cut`: more rows match than the limit allows."""

    columns: tuple[Column, ...]
    rows: pa.Table
    is_cut: bool
    freshness: tuple[Freshness, ...]


class Store(Parts, Protocol):
    """A store: accepts parts, answers queries."""

    def states(self) -> list[ViewState]:
        """All views, by name."""
        ...

    def answer(self, query: Query) -> Answer:
        """Rows of a view. UnknownView, or BadRequest for a query that the view cannot answer."""
        ...

    def sql(self, statement: str, as_of: int | datetime | None = None) -> Answer:
        """One SELECT over the views, in the store's own dialect; BadRequest for anything else."""
        ...

    def close(self) -> None: ...
