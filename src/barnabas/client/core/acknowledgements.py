"""Acknowledgements of records that a share consumer acquired, in the form that requests carry.

In: the type of each offset, or whole ranges that are accepted. Out: batches of consecutive offsets, with one
type for all of them or one for each (KIP-932). Does not know: who acquired the records, when they are sent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

GAP = 0  # no record is at this offset: it was compacted away, or holds a marker


class AcknowledgeType(IntEnum):
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class AckBatch(NamedTuple):
    """Consecutive offsets; `types` has one entry for all of them, or one for each."""

    first_offset: int
    last_offset: int
    types: tuple[int, ...]

    @property
    def offsets(self) -> range:
        return range(self.first_offset, self.last_offset + 1)

    @property
    def renews(self) -> bool:
        return AcknowledgeType.RENEW in self.types

    def typed(self) -> Iterator[tuple[int, int]]:
        """Each offset with its type."""
        types = self.types if len(self.types) > 1 else self.types * len(self.offsets)
        return zip(self.offsets, types, strict=True)


def batches_of(types: Mapping[int, int]) -> list[AckBatch]:
    """Batches for offsets with their types."""
    found: list[AckBatch] = []
    stretch: list[int] = []
    first = 0
    for offset in sorted(types):
        if stretch and offset != first + len(stretch):
            found.append(batch_of(first, stretch))
            stretch = []
        if not stretch:
            first = offset
        stretch.append(int(types[offset]))
    if stretch:
        found.append(batch_of(first, stretch))
    return found


def batch_of(first_offset: int, types: list[int]) -> AckBatch:
    last_offset = first_offset + len(types) - 1
    is_one_type = types.count(types[0]) == len(types)
    return AckBatch(first_offset, last_offset, tuple(types[:1] if is_one_type else types))


def accept(ranges: Iterable[tuple[int, int]], gaps: Collection[int] = ()) -> list[AckBatch]:
    """Batches that accept whole ranges (first and last offset) but for their gaps."""
    accepted = (int(AcknowledgeType.ACCEPT),)
    if not gaps:
        return [AckBatch(first, last, accepted) for first, last in ranges]
    found = []
    for first, last in ranges:
        types = [GAP if offset in gaps else accepted[0] for offset in range(first, last + 1)]
        found.append(batch_of(first, types))
    return found
