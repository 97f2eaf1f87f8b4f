"""The order of Java's HashMap and PriorityQueue, so that ties break as in Apache Kafka.

Apache Kafka's assignor takes members and processes in the order of their hashes, and among equally loaded
ones the first of a binary heap. With another order an equal group would get another assignment after its
coordinator moved between Apache Kafka and this broker.
Does not know: what is ordered. Keys whose hashes collide keep the order in which they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")
CAPACITY = 16  # of a HashMap that was made without a size
MASK = 2**32 - 1


def string_hash(text: str) -> int:
    """`String.hashCode()`, as an unsigned number."""
    units = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for at in range(0, len(units), 2):
        found = (31 * found + (units[at] << 8 | units[at + 1])) & MASK
    return found


def hash_order(keys: Iterable[str], size: int | None = None) -> list[str]:
    """The keys in the order of a HashMap that was made for `size` entries."""
    names = list(keys)
    capacity = CAPACITY if size is None else 1
    while size is not None and capacity < size:
        capacity *= 2
    while len(names) * 4 > capacity * 3:
        capacity *= 2

    def bucket(name: str) -> int:
        found = string_hash(name)
        return (found ^ found >> 16) & capacity - 1

    return sorted(names, key=bucket)


class PriorityQueue(Generic[T]):
    """`java.util.PriorityQueue`: a binary heap; which of equal items comes first depends on its steps."""

    __slots__ = ("_items", "_key")

    def __init__(self, items: Iterable[T], key: Callable[[T], float]) -> None:
        self._key = key
        self._items: list[T] = []
        for item in items:
            self.add(item)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: T) -> None:
        items, key = self._items, self._key
        items.append(item)
        at, value = len(items) - 1, key(item)
        while at > 0:
            parent = at - 1 >> 1
            if value >= key(items[parent]):
                break
            items[at] = items[parent]
            at = parent
        items[at] = item

    def pop(self) -> T:
        items, key = self._items, self._key
        first, last = items[0], items.pop()
        size = len(items)
        if not size:
            return first
        at, value = 0, key(last)
        while at < size >> 1:
            child = 2 * at + 1
            if child + 1 < size and key(items[child]) > key(items[child + 1]):
                child += 1
            if value <= key(items[child]):
                break
            items[at] = items[child]
            at = child
        items[at] = last
        return first
