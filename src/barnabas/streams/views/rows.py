"""Result of a lookup: rows, and how much of the changelog they reflect; and why there is no answer.

Does not know: where rows come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

# The next offset of each partition of the changelog: all records before it are in the rows.
Position = Mapping[int, int]


class Row(NamedTuple):
    """`key` is a `Windowed` in stores of windows and sessions. `timestamp` is that of the last record that
    changed the row."""

    key: Any
    value: Any
    timestamp: int


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows as of a position. `has_more`: the limit left rows out."""

    rows: tuple[Row, ...]
    position: Position = field(default_factory=dict)
    has_more: bool = False

    @property
    def row(self) -> Row | None:
        """The only row of a lookup by key."""
        return self.rows[0] if self.rows else None

    @property
    def value(self) -> Any:
        return self.rows[0].value if self.rows else None


class KeyPlace(NamedTuple):
    """The place of a key: the partition of the changelog, which is the number of the task."""

    store: str
    partition: int
    topic: str


class ViewError(Exception):
    """A lookup that cannot be answered; the message says why."""


class UnknownStore(ViewError):
    """There is no store of this name, or it cannot be queried."""


class WrongLookup(ViewError):
    """The store is of a kind that has no such lookup, or the key is not one of its keys."""


class NotReady(ViewError):
    """The changelog does not exist yet, or the view has not reached the position that was asked for."""
