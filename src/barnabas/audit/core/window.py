"""The counts of a counter since its last message: numbers by topic, partition and bucket.

In: records as topic, partition and timestamp, with the time at which they were seen. Out: entries of count
messages. The number of cells is bounded: timestamps of a broken producer cannot make buckets without end;
beyond the bound, records go to the bucket `NO_TIME`, and `overflowed` counts them.
Does not know: threads, clocks, how messages travel.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.audit.core.buckets import NO_TIME, WIDTH_MS, bucket_of
from barnabas.audit.core.contents import MODULUS_MASK
from barnabas.audit.core.delays import Delays
from barnabas.audit.core.messages import ENTRIES_MAX, NO_OFFSET, NO_PARTITION, Entry, Tally

CELLS_MAX = 50_000
COUNT, DROPPED, ABORTED, FAILED, SUMMED, CONTENT = range(6)  # the fields of `Tally`


class _Cell:
    __slots__ = ("delays", "first", "numbers")

    def __init__(self) -> None:
        self.first = NO_OFFSET
        self.numbers = [0, 0, 0, 0, 0, 0]
        self.delays = Delays()


class Window:
    def __init__(self, width_ms: int = WIDTH_MS, cells_max: int = CELLS_MAX) -> None:
        self.width_ms = width_ms
        self.overflowed = 0
        self._cells_max = cells_max
        self._cells: dict[tuple[str, int, int], _Cell] = {}

    def add(
        self,
        topic: str,
        partition: int,
        timestamp_ms: int,
        now_ms: int,
        count: int = 1,
        field: int = COUNT,
        content: int | None = None,
        offset: int = NO_OFFSET,
    ) -> None:
        """Count records with the same timestamp; `content` is the sum of their contents, and `offset` that of
        the first one, if they are known."""
        bucket = bucket_of(timestamp_ms, self.width_ms)
        cell = self._cells.get((topic, partition, bucket))
        if cell is None:
            cell = self._new_cell(topic, partition, bucket, count)
        numbers = cell.numbers
        numbers[field] += count
        if offset != NO_OFFSET and not NO_OFFSET < cell.first <= offset:
            cell.first = offset
        if content is not None and field <= DROPPED:
            numbers[SUMMED] += count
            numbers[CONTENT] = (numbers[CONTENT] + content) & MODULUS_MASK
        if field == COUNT and timestamp_ms >= 0:
            cell.delays.add(now_ms - timestamp_ms, count)

    def _new_cell(self, topic: str, partition: int, bucket: int, count: int) -> _Cell:
        if len(self._cells) >= self._cells_max:
            self.overflowed += count
            partition, bucket = NO_PARTITION, NO_TIME
        return self._cells.setdefault((topic, partition, bucket), _Cell())

    def merge(self, other: Window, field: int) -> None:
        """Add records that another window counted, as another kind."""
        for (topic, partition, bucket), cell in other._cells.items():
            mine = self._cells.get((topic, partition, bucket))
            if mine is None:
                mine = self._new_cell(topic, partition, bucket, cell.numbers[COUNT])
            mine.numbers[field] += cell.numbers[COUNT]
            if field <= DROPPED:
                mine.numbers[SUMMED] += cell.numbers[SUMMED]
                mine.numbers[CONTENT] = (mine.numbers[CONTENT] + cell.numbers[CONTENT]) & MODULUS_MASK
            if field == COUNT:
                mine.delays.merge(cell.delays)
                if cell.first != NO_OFFSET and not NO_OFFSET < mine.first <= cell.first:
                    mine.first = cell.first

    def __bool__(self) -> bool:
        return bool(self._cells)

    def entries(self) -> Iterator[tuple[str, tuple[Entry, ...]]]:
        """The counts by topic, in lists that fit one message each."""
        by_topic: dict[str, list[Entry]] = {}
        for (topic, partition, bucket), cell in sorted(self._cells.items()):
            entry = Entry(bucket, Tally(*cell.numbers), partition, cell.delays, cell.first)
            by_topic.setdefault(topic, []).append(entry)
        for topic, entries in by_topic.items():
            for start in range(0, len(entries), ENTRIES_MAX):
                yield topic, tuple(entries[start : start + ENTRIES_MAX])
