"""Records of aborted transactions: a group that reads committed records only does not get them.

In: the batches that were read, in order, and the aborted transactions among them. Out: the batches to leave
out, and acquired ranges without them. Control batches stay: clients know that they hold no records.
Does not know: logs, states of records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.shares.partition.acquiring import Acquired, Span


class ProducedBatch(NamedTuple):
    """Evidence on whether the records of a batch count."""

    first: int
    last: int
    producer_id: int
    is_transactional: bool
    is_abort_marker: bool


def aborted_spans(batches: Iterable[ProducedBatch], aborted: Iterable[tuple[int, int]]) -> list[Span]:
    """The batches of aborted transactions; `aborted` has first offset and producer id of each transaction."""
    begun = sorted(aborted, reverse=True)
    producers: set[int] = set()
    found = []
    for batch in batches:
        if batch.producer_id < 0:
            continue
        while begun and begun[-1][0] <= batch.last:
            producers.add(begun.pop()[1])
        if batch.is_abort_marker:
            producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in producers:
            found.append(Span(batch.first, batch.last))
    return found


def without(acquired: Sequence[Acquired], spans: Sequence[Span]) -> list[Acquired]:
    """The acquired ranges without the offsets of the spans. Both are in order."""
    found = []
    for first, last, deliveries in acquired:
        for span in spans:
            if span.last < first:
                continue
            if span.first > last or first > last:
                break
            if span.first > first:
                found.append(Acquired(first, span.first - 1, deliveries))
            first = span.last + 1
        if first <= last:
            found.append(Acquired(first, last, deliveries))
    return found
