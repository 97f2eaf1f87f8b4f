"""How much of a table is in memory at once: runs of changes, batches of a snapshot.

Rows may have values of many megabytes, so bytes bound both beside the numbers of the settings.
`max.queue.size.in.bytes` says how many; 0 is 16 MiB. A single row may exceed it. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from barnabas.connect.config import Settings
from barnabas.connect.connectors.debezium.envelope import Change, TableSchemas

BYTES = "max.queue.size.in.bytes"
BYTES_DEFAULT = 16 << 20
ROWS_FIRST, GROWTH = 8, 4


def bytes_max(settings: Settings) -> int:
    return settings.integer(BYTES) or BYTES_DEFAULT


class Run:
    """Changes of one table that become one batch."""

    def __init__(self, settings: Settings) -> None:
        self._count_max = settings.integer("max.batch.size") or 1
        self._bytes_max = bytes_max(settings)
        self.changes: list[Change] = []
        self.schemas: TableSchemas | None = None
        self._bytes = 0

    def __len__(self) -> int:
        return len(self.changes)

    def takes(self, schemas: TableSchemas) -> bool:
        """Whether a change of this table may be added."""
        if not self.changes:
            return True
        has_room = len(self.changes) < self._count_max and self._bytes < self._bytes_max
        return has_room and schemas is self.schemas

    def add(self, schemas: TableSchemas, changes: Sequence[Change], size: int) -> None:
        """`size`: about how many bytes the log has for them."""
        self.schemas = schemas
        self.changes += changes
        self._bytes += size

    def clear(self) -> None:
        self.changes, self.schemas, self._bytes = [], None, 0


def row_batches(
    fetch: Callable[[int], Sequence[Sequence[Any]]], rows_max: int, size_max: int
) -> Iterator[Sequence[Sequence[Any]]]:
    """Rows of a query. The size of those that came says how many are asked for next."""
    count = min(ROWS_FIRST, rows_max)
    while rows := fetch(count):
        size = sum(len(each) for row in rows for each in row if isinstance(each, str | bytes))
        yield rows
        fitting = size_max * len(rows) // max(size, 1)
        count = max(1, min(rows_max, count * GROWTH, fitting))
