"""Plans of batches: the offsets that a batch reads, and their division among tasks.

In: where partitions begin and end, limits. Out: ranges. The same arithmetic as Spark's own Kafka
connector, so that limits mean the same. Pure. Does not know: clusters, Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import ceil, floor

from barnabas.client.core.topology import TopicPartition
from barnabas.spark.reading.fetcher import OffsetRange

Offsets = Mapping[TopicPartition, int]


def limited(start: Offsets, end: Offsets, rows_max: int) -> dict[TopicPartition, int]:
    """Ends such that about `rows_max` rows are read, each partition in proportion to what it has."""
    sizes = {place: max(end[place] - start.get(place, 0), 0) for place in end}
    total = sum(sizes.values())
    if total <= rows_max:
        return dict(end)
    found = {}
    for place, size in sizes.items():
        share = rows_max * (size / total)
        offset = start.get(place, 0) + (ceil(share) if share < 1 else floor(share))
        found[place] = min(offset, end[place]) if size else end[place]
    return found


def split(
    ranges: Iterable[OffsetRange], min_partitions: int | None, rows_max: int | None
) -> list[OffsetRange]:
    """One range a task: as they are, or cut so that none is too large, or that there are enough of them."""
    found = [each for each in ranges if each.stop > each.start]
    if rows_max is not None:
        found = [part for each in found for part in cut(each, ceil((each.stop - each.start) / rows_max))]
    if min_partitions is None or len(found) >= min_partitions:
        return found
    return spread(found, min_partitions)


def spread(ranges: list[OffsetRange], count: int) -> list[OffsetRange]:
    """Large ranges are cut until there are about `count`; small ones stay whole."""
    total = sum(each.stop - each.start for each in ranges)
    wanted = total / count
    small = [each for each in ranges if each.stop - each.start <= wanted]
    large = [each for each in ranges if each.stop - each.start > wanted]
    left = count - len(small)
    large_total = sum(each.stop - each.start for each in large)
    pieces = {
        each: max(round((each.stop - each.start) / large_total * left), 1) if large_total else 1
        for each in large
    }
    return [part for each in ranges for part in cut(each, pieces.get(each, 1))]


def cut(whole: OffsetRange, pieces: int) -> list[OffsetRange]:
    size = whole.stop - whole.start
    pieces = max(min(pieces, size), 1)
    bounds = [whole.start + size * index // pieces for index in range(pieces + 1)]
    return [
        OffsetRange(whole.topic, whole.topic_id, whole.partition, start, stop)
        for start, stop in pairwise(bounds)
    ]
