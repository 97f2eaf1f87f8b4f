"""The lowest offset of a partition of `__share_group_state` that is still needed.

In: the offset of each snapshot and tombstone, in the order of the log. Out: the offset below which all
records can be deleted: that of the oldest of the latest snapshots. A share partition that is never written
holds all others back; the shard therefore repeats its snapshot after a time.
Does not know: records, when to delete.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from barnabas.shares.state.keys import ShareKey

STALE_MAX = 64  # entries of the heap for each live one, before it is made again


class NeededOffsets:
    __slots__ = ("_heap", "_last_deleted", "_offsets")

    def __init__(self) -> None:
        self._offsets: dict[ShareKey, int] = {}  # of the latest snapshots
        self._heap: list[tuple[int, ShareKey]] = []  # the same, with entries that are out of date
        self._last_deleted: int | None = None

    def snapshot_written(self, key: ShareKey, offset: int) -> None:
        self._offsets[key] = offset
        heappush(self._heap, (offset, key))
        if len(self._heap) > 2 * len(self._offsets) + STALE_MAX:
            self._heap = [(offset, key) for key, offset in self._offsets.items()]
            heapify(self._heap)

    def deleted(self, key: ShareKey, offset: int) -> None:
        self._offsets.pop(key, None)
        self._last_deleted = offset

    def lowest(self) -> int | None:
        """The offset that the log may start at; None if nothing can be said."""
        heap, offsets = self._heap, self._offsets
        while heap and offsets.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else self._last_deleted
