"""Records of a batch that are delivered, while the runtime hands the same batch over again.

A sink whose requests cannot be undone asks this before it sends: a batch that failed in its middle is not
sent again from its beginning. Does not know: sinks. The memory is this task's: a crash forgets it.
"""

from __future__ import annotations

from barnabas.connect.data import Records

Place = tuple[str, int]


class Delivered:
    def __init__(self) -> None:
        self._next: dict[Place, int] = {}

    def places(self, records: Records) -> list[tuple[Place, int]]:
        """Partition and offset of each record; without offsets the index stands for them."""
        count = len(records)
        partitions = [0] * count if records.partitions is None else records.partitions.to_pylist()
        offsets = list(range(count)) if records.offsets is None else records.offsets.to_pylist()
        topics = records.topics.to_pylist()
        return [((topics[i], partitions[i]), offsets[i]) for i in range(count)]

    def holds(self, place: Place, offset: int) -> bool:
        return offset < self._next.get(place, 0)

    def add(self, place: Place, offset: int) -> None:
        self._next[place] = max(self._next.get(place, 0), offset + 1)

    def clear(self) -> None:
        """The batch is done, or the next one comes from elsewhere."""
        self._next.clear()
