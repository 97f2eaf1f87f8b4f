"""One store over all its partitions: typed keys in, rows in order out.

In: the store's definition, keys as Python values. Out: rows of all partitions, merged by the bytes of their
keys. A key is looked for in the partition that the default partitioner gives it, then in the others, because
source topics may have been written with another partitioner. Does not know: brokers.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from barnabas.client.partitioner import murmur2
from barnabas.plans.aggregate_functions import functions_of
from barnabas.plans.foreign_keys import after_prefix
from barnabas.plans.interpreter.task import key_writer_of
from barnabas.plans.nodes import Source, TableSource, WindowAggregate
from barnabas.plans.plan import Plan
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.plans.windows import UnlimitedWindows
from barnabas.streams.views.partition_view import Found, PartitionView
from barnabas.streams.views.rows import Answer, Row, UnknownStore, WrongLookup

FOREVER = (1 << 63) - 1
TABLES = (StoreKind.KEY_VALUE, StoreKind.TIMESTAMPED, StoreKind.WINDOWED_TABLE, StoreKind.VERSIONED)
PIECE_ROWS_MIN, PIECE_ROWS_MAX = 100, 5_000
QUERYABLE = (*TABLES, StoreKind.WINDOW, StoreKind.SESSION)


def changelog_of(plan: Plan, spec: StoreSpec) -> str | None:
    """The topic that has every change of a store; a global table's is its source topic."""
    if spec.is_global:
        node = plan.table_source_of(spec.name)
        source = None if node is None else plan.by_name[node.parents[0]]
        return source.topics[0] if isinstance(source, Source) else None
    return spec.changelog_topic(plan.application_id)


def queryable(plan: Plan) -> dict[str, tuple[StoreSpec, str]]:
    """Stores that can be queried, with their changelogs."""
    found = {}
    for name, spec in plan.stores.items():
        topic = changelog_of(plan, spec)
        if spec.kind in QUERYABLE and topic is not None:
            found[name] = (spec, topic)
    return found


def _pieces_of(part: PartitionView, first: bytes | None, last: bytes | None) -> Iterator[Found]:
    count = PIECE_ROWS_MIN
    while found := part.between(first, last, count):
        yield from found
        if len(found) < count:
            return
        first, count = found[-1][0] + b"\x00", min(4 * count, PIECE_ROWS_MAX)


class StoreView:
    """`partitions` is empty until the changelog exists and `open` was called."""

    def __init__(self, plan: Plan, name: str, folder: Path) -> None:
        known = queryable(plan)
        if name not in known:
            raise UnknownStore(
                f"there is no store {name!r} to query; there are: {', '.join(known) or 'none'}"
            )
        self.spec, self.topic = known[name]
        self.name, self._plan, self._folder = name, plan, folder
        self._write = key_writer_of(self.spec, plan.application_id)
        self._finish: Callable[[Any], Any] | None = None
        self._windows: Any = None
        for node in plan.nodes:
            if getattr(node, "store", None) == name and not isinstance(node, TableSource):
                aggregate = getattr(node, "aggregate", None)
                if aggregate is not None:
                    self._finish = functions_of(aggregate).finish
                if isinstance(node, WindowAggregate):
                    self._windows = node.windows
        self.partitions: list[PartitionView] = []

    @property
    def kind(self) -> StoreKind:
        return self.spec.kind

    @property
    def position(self) -> dict[int, int]:
        return {number: each.position for number, each in enumerate(self.partitions)}

    def open(self, count: int) -> None:
        self.partitions = [
            PartitionView(
                self.spec,
                self._plan.application_id,
                self._folder / f"{self.name}-{number}.sqlite",
                end_of=self._end_of,
                finish=self._finish,
            )
            for number in range(count)
        ]

    def _end_of(self, start: int) -> int:
        if isinstance(self._windows, UnlimitedWindows):
            return FOREVER
        return min(start + self.spec.window_size_ms, FOREVER)

    # -- keys --------------------------------------------------------------------------------------

    def key_bytes(self, key: Any) -> bytes:
        try:
            return self._write(key)
        except Exception as error:
            raise WrongLookup(f"{key!r} is no key of the store {self.name}: {error}") from error

    def partition_of(self, key: bytes) -> int:
        return (murmur2(key) & 0x7FFFFFFF) % len(self.partitions)

    def _likely_first(self, key: bytes) -> list[PartitionView]:
        first = self.partition_of(key)
        return [self.partitions[first], *(each for at, each in enumerate(self.partitions) if at != first)]

    def _check(self, what: str, *kinds: StoreKind) -> None:
        if self.kind not in kinds:
            raise WrongLookup(f"the store {self.name} is of the kind {self.kind.value}: it has no {what}")

    # -- lookups -----------------------------------------------------------------------------------

    def get(self, key: Any, as_of: int | None = None) -> Answer:
        self._check("lookup by key alone", *TABLES)
        data = self.key_bytes(key)
        return self._first(part.get(data, as_of) for part in self._likely_first(data))

    def versions(self, key: Any, low: int, high: int) -> Answer:
        self._check("versions", StoreKind.VERSIONED)
        data = self.key_bytes(key)
        return self._first(part.versions(data, low, high) for part in self._likely_first(data))

    def windows(self, key: Any, low: int, high: int) -> Answer:
        self._check("windows", StoreKind.WINDOW)
        data = self.key_bytes(key)
        return self._first(part.windows(data, low, high) for part in self._likely_first(data))

    def sessions(self, key: Any, end_min: int, start_max: int) -> Answer:
        self._check("sessions", StoreKind.SESSION)
        data = self.key_bytes(key)
        return self._first(part.sessions(data, end_min, start_max) for part in self._likely_first(data))

    def _first(self, found: Iterable[list[Found]]) -> Answer:
        rows = next((some for some in found if some), [])
        return Answer(tuple(row for _, row in rows), self.position)

    def scan(self, first: bytes | None, last: bytes | None, low: int, high: int, limit: int | None) -> Answer:
        """Rows of all partitions with keys from `first` on, before `last`; of windows those that start in
        [low, high], of sessions those that touch it."""
        wanted = None if limit is None else limit + 1
        found = []
        for part in self.partitions:
            if self.kind == StoreKind.WINDOW:
                found.append(part.all_windows(first, last, low, high, wanted))
            elif self.kind == StoreKind.SESSION:
                found.append(part.all_sessions(first, last, low, high, wanted))
            else:
                found.append(part.between(first, last, wanted))
        rows = [row for _, row in islice(heapq.merge(*found, key=lambda each: each[0]), wanted)]
        if limit is not None and len(rows) > limit:
            return Answer(tuple(rows[:limit]), self.position, has_more=True)
        return Answer(tuple(rows), self.position)

    def pieces(self, first: bytes | None, last: bytes | None) -> Iterator[Row]:
        """Rows of a table in the order of their keys' bytes. Each piece holds its partition for a moment; a
        reader that stops leaves the rest unread."""
        self._check("rows by key", *TABLES)
        some = [_pieces_of(part, first, last) for part in self.partitions]
        return (row for _, row in heapq.merge(*some, key=itemgetter(0)))

    def bounds(self, first: Any, last: Any) -> tuple[bytes | None, bytes | None]:
        """The bytes of a range of keys, both ends included."""
        low = None if first is None else self.key_bytes(first)
        return low, None if last is None else self.key_bytes(last) + b"\x00"

    def prefix_bounds(self, prefix: Any) -> tuple[bytes, bytes | None]:
        data = prefix if isinstance(prefix, bytes) else self.key_bytes(prefix)
        return data, after_prefix(data)

    def count(self) -> int:
        self._check("count", *TABLES)
        return sum(part.count() for part in self.partitions)

    def close(self) -> None:
        for part in self.partitions:
            part.close()
        self.partitions = []
