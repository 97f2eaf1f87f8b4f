"""Parts of views: what the layers hand to the store, and the store's port.

A *version* is the Delta version of the view's table; a view that joins other tables also has a version of
each of them (`joined`). A *batch part* is the whole view at a version, the *horizon*. A *speed part* is what
changed in the view after one version, up to and including another: rows that add to a key, rows that replace
a key, and keys that are gone. The store (in this process) and its client (over HTTP) both implement `Parts`.
Does not know: how parts are computed or kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias

import pyarrow as pa

from barnabas.pipeline.increments.source_table import TableVersion
from barnabas.pipeline.views.layout import Layout

__all__ = [
    "GONE",
    "REPLACES",
    "BatchPart",
    "Conflict",
    "Joined",
    "PartFiles",
    "PartRows",
    "Parts",
    "SpeedPart",
    "TableVersion",
    "ViewState",
    "is_within",
]

REPLACES, GONE = "_replaces", "_gone"

Joined = Mapping[str, int]  # versions of joined tables, by the name of the table


@dataclass(frozen=True, slots=True)
class PartFiles:
    """Rows of a part as Parquet files in a folder of the lake, which executors wrote."""

    folder: str
    names: tuple[str, ...]
    num_rows: int


PartRows: TypeAlias = "pa.Table | PartFiles"


@dataclass(frozen=True, slots=True)
class BatchPart:
    """The whole view as of `horizon`. `rows` has the columns of `layout.stored`."""

    layout: Layout
    horizon: TableVersion
    rows: PartRows
    joined: Joined = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpeedPart:
    """Changes of the view in (after, upto], and of joined tables in (joined_after, joined]. `rows` has the
    columns of `layout.stored`, and the booleans `_replaces` and `_gone`; each key is there once."""

    layout: Layout
    after: int
    upto: TableVersion
    rows: PartRows
    joined_after: Joined = field(default_factory=dict)
    joined: Joined = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ViewState:
    """The state of a view.

    Its answers include everything up to `position`, and the joined tables as of `joined`. At `checked_at` the
    view's table had nothing newer. Time travel reaches back to `oldest`. Speed parts must pass through
    `fence` and `fence_joined`, and not cross them: a horizon was announced there."""

    view: str
    layout: Layout
    horizon: TableVersion
    position: TableVersion
    checked_at: datetime
    oldest: int
    rows: int
    fence: int
    joined: Joined = field(default_factory=dict)
    fence_joined: Joined = field(default_factory=dict)

    @property
    def is_before_fence(self) -> bool:
        """Whether the next speed parts must end at the fence or before it."""
        at_fence = (self.position.version, dict(self.joined)) == (self.fence, dict(self.fence_joined))
        return not at_fence and is_within(self.position.version, self.joined, self.fence, self.fence_joined)


def is_within(version: int, joined: Joined, bound: int, bound_joined: Joined) -> bool:
    """Whether a state of a view is not beyond another one, in any of its tables."""
    return version <= bound and all(number <= bound_joined.get(name, -1) for name, number in joined.items())


class Conflict(Exception):
    """A part that does not continue the view's state, because another process moved it. Read the state, and
    compute again."""


class Parts(Protocol):
    """Accepts parts, each in one transaction. A repeated part changes nothing."""

    def state(self, view: str) -> ViewState | None:
        """The state of the view; None if it was never computed."""
        ...

    def announce(self, view: str, fingerprint: str, horizon: int, joined: Joined | None = None) -> None:
        """Announce that a batch part at these versions is being computed: no speed part may cross them.

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
