"""What the layers hand to the store, and what the store says back.

A *version* is the Delta version of the view's table: the position in the master data. A batch part is the
whole view at its version (the horizon). A speed part is what happened to the view after one version, up to
and with another: rows that increment a key, rows that replace one, and keys that are gone. In: values. Out:
values, and `Parts`, the port that the store (in process) and its client (over HTTP) both are. Does not know:
who computes parts, who keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import pyarrow as pa

from barnabas.pipeline.views.layout import Layout

REPLACES, GONE = "_replaces", "_gone"


@dataclass(frozen=True, slots=True)
class Position:
    """A version of the view's table, and when it was committed."""

    version: int
    at: datetime


@dataclass(frozen=True, slots=True)
class BatchPart:
    """The whole view as of `horizon`. `rows` has the columns of `layout.stored`."""

    layout: Layout
    horizon: Position
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class SpeedPart:
    """Changes of the view in (after, upto]. `rows`: `layout.stored`, `_replaces` and `_gone` (booleans)."""

    layout: Layout
    after: int
    upto: Position
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class ViewState:
    """Where a view stands. Everything up to `position` is in its answers; `checked_at` is when somebody last
    saw that the master data had nothing newer; `oldest` is the earliest version that time travel can still
    show. Speed parts end at
    `fence` before they go on: a horizon was announced there."""

    view: str
    layout: Layout
    horizon: Position
    position: Position
    checked_at: datetime
    oldest: int
    rows: int
    fence: int


class Conflict(Exception):
    """A part that does not continue from where the view stands: somebody else was faster. Look, and compute
    again."""


class Parts(Protocol):
    """Takes parts, each in one transaction; a part that came before is taken for what it is, a repetition."""

    def state(self, view: str) -> ViewState | None:
        """Where the view stands; None if it was never computed."""
        ...

    def announce(self, view: str, fingerprint: str, horizon: int) -> None:
        """A batch part of this layout as of this version is being computed: from now on no speed part crosses
        the version (`fence`).

        Without that a speed part could begin before the new horizon and end after it: half of it would count
        twice. Conflict if one has crossed it already. A view that does not exist yet, or has another layout,
        begins anew with the batch part: nothing can cross."""
        ...

    def put_batch(self, part: BatchPart) -> ViewState:
        """Moves the horizon. Conflict if the view's horizon is beyond it already, or a speed part lies
        across."""
        ...

    def put_speed(self, part: SpeedPart) -> ViewState:
        """Adds what came after the view's position. Conflict if it is not at `after`, if the part crosses the
        fence, or if the view has another
        layout."""
        ...

    def checked(self, view: str, version: int, at: datetime) -> None:
        """The master data was at `version` at that time; if the view is there too, its answers were complete
        then."""
        ...

    def drop(self, view: str) -> None:
        """Forgets a view."""
        ...
