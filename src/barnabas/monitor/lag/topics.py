"""Topics and the offsets of their partitions, as the lag of groups needs them.

In: metadata and offsets as they are read. Out: for each partition its start, its end, the recent ends, and
when the end was where. Does not know: groups, requests.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.monitor.lag.offset_times import add_point, new_offset_times

UNKNOWN = -1


class Placement(NamedTuple):
    """Leader and replicas of a partition; the leader is -1 while there is none."""

    leader: int
    replicas: Sequence[int]
    in_sync: Sequence[int]


NOWHERE = Placement(UNKNOWN, (), ())


class PartitionOffsets:
    """The offsets of one partition. `ends` and `starts_seen` hold one number for each sample of the history,
    the newest last."""

    __slots__ = ("end", "ends_recent", "ends_seen", "offset_times", "placement", "start", "starts_seen")

    def __init__(self) -> None:
        self.start = UNKNOWN
        self.end = UNKNOWN
        self.placement = NOWHERE
        self.ends_recent = array("q")
        self.offset_times = new_offset_times()
        self.ends_seen = array("q")
        self.starts_seen = array("q")

    def set_end(self, end: int, now_ms: int, intervals: int) -> None:
        if end < self.end:  # deleted and created again, or truncated: old points would mislead
            del self.offset_times[:]
            del self.ends_recent[:]
        self.end = end
        recent = self.ends_recent
        if len(recent) >= intervals:
            del recent[: len(recent) - intervals + 1]
        recent.append(end)
        add_point(self.offset_times, now_ms, end)


class Topic:
    """`is_known` is false for a topic that a commit named before the metadata did. Settings are None where
    nobody read them."""

    __slots__ = ("cleanup_policy", "is_internal", "is_known", "is_old", "name", "partitions", "retention_ms")

    def __init__(self, name: str) -> None:
        self.name = name
        self.partitions: list[PartitionOffsets] = []
        self.is_known = False
        self.is_old = False
        self.is_internal = False
        self.retention_ms: int | None = None  # -1: for ever
        self.cleanup_policy: str | None = None

    def partition(self, index: int) -> PartitionOffsets:
        while len(self.partitions) <= index:
            self.partitions.append(PartitionOffsets())
        return self.partitions[index]
