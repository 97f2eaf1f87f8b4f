"""The store's face: it takes parts (`views.parts.Parts`) and answers questions about the merged views.

In: parts, queries, SQL. Out: `Answer`s with how fresh they are. One process owns a store.
`open_store` knows the kinds there are. Does not know: HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import pyarrow as pa

from barnabas.pipeline.serving.store.query import Query
from barnabas.pipeline.views.layout import Column
from barnabas.pipeline.views.parts import Parts, Position, ViewState

KEEP_HORIZONS = 3


class UnknownView(LookupError):
    """No such view; the text names those that are there."""


class StoreError(Exception):
    """The store cannot be opened or used; the text says which one and why, without passwords."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on questions in SQL and on views."""

    statement_ms_max: int = 10_000
    rows_max: int = 100_000
    sql_chars_max: int = 20_000
    memory_bytes_max: int = 1 << 30


@dataclass(frozen=True, slots=True)
class Freshness:
    """How fresh an answer is: it holds the master data up to `position`, all of it at `complete_at`.

    `horizon` is how far the batch layer has come; from there on the speed layer counts."""

    view: str
    horizon: Position
    position: Position
    complete_at: datetime


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows with the state they were read from; `is_cut` says that more rows match than were asked for."""

    columns: tuple[Column, ...]
    rows: pa.Table
    is_cut: bool
    freshness: tuple[Freshness, ...]


class Store(Parts, Protocol):
    """What a store does beside taking parts."""

    def states(self) -> list[ViewState]:
        """All views, by name."""
        ...

    def answer(self, query: Query) -> Answer:
        """UnknownView, or BadRequest where the view cannot answer this."""
        ...

    def sql(self, statement: str, as_of: int | datetime | None = None) -> Answer:
        """One SELECT over the views, in the store's own dialect; BadRequest for anything else."""
        ...

    def close(self) -> None: ...
