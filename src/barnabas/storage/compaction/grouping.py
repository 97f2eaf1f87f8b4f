"""Grouping of segments for cleaning: neighbours that fit into one segment together are merged.

In: segments with their sizes. Out: groups in order; each becomes one segment within the limits of size, index
size and offset range. Without this, repeated cleaning would leave thousands of tiny segments.
Does not know: what is in the segments.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.storage.segments.index import RELATIVE_OFFSET_MAX


@dataclass(frozen=True, slots=True)
class SegmentSizes:
    base_offset: int
    log_bytes: int
    offset_index_bytes: int
    time_index_bytes: int


def group_segments(
    segments: Sequence[SegmentSizes], segment_bytes: int, index_bytes: int, end_offset: int
) -> list[list[SegmentSizes]]:
    """Group neighbours. `end_offset` is an upper bound for the end of the last segment."""
    groups: list[list[SegmentSizes]] = []
    room = [0, 0, 0]  # left in the last group: log, offset index, time index
    for index, segment in enumerate(segments):
        following = segments[index + 1].base_offset if index + 1 < len(segments) else end_offset
        needed = [segment.log_bytes, segment.offset_index_bytes, segment.time_index_bytes]
        fits = (
            bool(groups)
            and all(need <= left for need, left in zip(needed, room, strict=True))
            and (segment.log_bytes == 0 or following - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX)
        )
        if not fits:
            groups.append([])
            room = [segment_bytes, index_bytes, index_bytes]
        groups[-1].append(segment)
        room = [left - need for need, left in zip(needed, room, strict=True)]
    return groups
