"""Parts of views: what the layers hand to the store, and the store's port.

A *version* is the Delta version of the view's table. A *batch part* is the whole view at a version, the
*horizon*. A *speed part* is what changed in the view after one version, up to and including another: rows
that add to a key, rows that replace a key, and keys that are gone. The store (in this process) and its
client (over HTTP) both implement `Parts`. Does not know: how parts are computed or kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import pyarrow as pa

from barnabas.pipeline.views.layout import Layout

REPLACES, GONE = "_replaces", "_gone"


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A version of the view's table, and when it was committed."""

    version: int
    at: datetime


@dataclass(frozen=True, slots=True)
class BatchPart:
    """The whole view as of `horizon`. `rows` has the columns of `layout.stored`."""

    layout: Layout
    horizon: TableVersion
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class SpeedPart:
    """Changes of the view in (after, upto]. `rows` has the columns of `layout.stored`, and the booleans
    `_replaces` and `_gone`."""

    layout: Layout
    after: int
    upto: TableVersion
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class ViewState:
    """The state of a view.

    Its answers include everything up to `position`. At `checked_at` the view's table had nothing newer. Time
    travel reaches back to `oldest`. No speed part may cross `fence`: a horizon was announced there."""

    view: str
    layout: Layout
    horizon: TableVersion
    position: TableVersion
    checked_at: datetime
    oldest: int
    rows: int
    fence: int


class Conflict(Exception):
    """A part that does not continue the view's state, because another process moved it. Read the state, and
    compute again."""


class Parts(Protocol):
    """Accepts parts, each in one transaction. A repeated part changes nothing."""

    def state(self, view: str) -> ViewState | None:
        """The state of the view; None if it was never computed."""
        ...

    def announce(self, view: str, fingerprint: str, horizon: int) -> None:
        """Announce that a batch part at this version is being computed: no speed part may cross it (`fence`).

        A speed part that begins before the new horizon and ends after it would be counted twice in part.
        Conflict if one has crossed it already. Nothing is announced for a view that does not exist yet or has
        another layout, because its batch part replaces everything."""
        ...

    def put_batch(self, part: BatchPart) -> ViewState:
        """Move the horizon. Conflict if the horizon is beyond it already, or a speed part crosses it."""
        ...

    def put_speed(self, part: SpeedPart) -> ViewState:
        """Add what came after the view's position. Conflict if the view is not at `after`, if the part
        crosses the fence, or if the view has another layout."""
        ...

    def checked(self, view: str, version: int, at: datetime) -> None:
        """The view's table was at `version` at that time. If the view is at that version, it was complete."""
        ...

    def drop(self, view: str) -> None:
        """Delete a view."""
        ...
