"""Watches: traced batches whose followers and consumers are waited for.

In: a batch that was written, later the offsets that readers fetch from. Out: the readers that have got the
batch: those that ask for an offset behind it. A watch ends after some seconds or readers. Does not know:
requests, spans, time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from barnabas.records.trace_context import TraceContext

WATCHES_MAX = 256
READERS_MAX = 16  # of one batch
WATCH_NS = 10 * 1_000_000_000

P = TypeVar("P", bound=Hashable)


@dataclass(slots=True)
class Watch:
    parent: TraceContext
    offset: int
    since_ns: int
    seen: set[str] = field(default_factory=set)


class Watches(Generic[P]):
    """Traced batches that wait for readers, by partition. False while there are none."""

    __slots__ = ("_by_partition", "_count")

    def __init__(self) -> None:
        self._by_partition: dict[P, list[Watch]] = {}
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def add(self, partition: P, watch: Watch) -> None:
        if self._count < WATCHES_MAX:
            self._by_partition.setdefault(partition, []).append(watch)
            self._count += 1

    def reached(self, partition: P, reader: str, fetch_offset: int) -> Iterator[Watch]:
        """Watches whose batch the reader has got with the fetch before this one."""
        for watch in self._by_partition.get(partition, ()):
            if fetch_offset > watch.offset and reader not in watch.seen and len(watch.seen) < READERS_MAX:
                watch.seen.add(reader)
                yield watch

    def expire(self, now_ns: int) -> None:
        """Forget watches that are too old."""
        kept = {}
        self._count = 0
        for partition, watches in self._by_partition.items():
            left = [each for each in watches if now_ns - each.since_ns < WATCH_NS]
            if left:
                kept[partition] = left
                self._count += len(left)
        self._by_partition = kept
