"""Groups and what they committed to each partition.

In: commits, members. Out: values to judge and to show. `GroupPartition` is the one structure that exists for
each group and partition: it is kept small, because there may be hundreds of thousands.
Does not know: requests, records.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from barnabas.monitor.lag.commit_window import Commit, new_window, newest
from barnabas.monitor.lag.topics import UNKNOWN, PartitionOffsets

PROBE_GROUPS = "kminion-end-to-end"  # ids of groups of end-to-end probes begin so, kminion's and ours


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group; `assigned` counts its partitions by topic."""

    member_id: str
    client_id: str
    host: str
    assigned: dict[str, int]


class GroupPartition:
    """The history of one group on one partition. `committed_seen` holds the committed offset at each sample
    of the history. `written_ms` is the timestamp of the record at `written_offset`, once it was read."""

    __slots__ = (
        "commit_count",
        "committed_seen",
        "group",
        "is_gone",
        "offsets",
        "owner",
        "window",
        "written_ms",
        "written_offset",
    )

    def __init__(self, group: Group, offsets: PartitionOffsets) -> None:
        self.group = group
        self.offsets = offsets
        self.window = new_window()
        self.committed_seen = array("q")
        self.owner: Member | None = None
        self.commit_count = 0
        self.written_offset = UNKNOWN
        self.written_ms = UNKNOWN
        self.is_gone = False  # removed; whoever still holds it looks for the present one

    @property
    def committed(self) -> int:
        """The last committed offset; UNKNOWN if there is none."""
        return self.window[-5] if self.window else UNKNOWN

    @property
    def first_unread(self) -> int:
        """The offset at which the group goes on: retention may have deleted the committed one."""
        return max(self.committed, self.offsets.start)

    @property
    def lacks_time(self) -> bool:
        """Whether records are behind, and nobody read yet when the first of them was written."""
        first = self.first_unread
        return bool(self.lag) and first < self.offsets.end and self.written_offset != first

    @property
    def last(self) -> Commit | None:
        return newest(self.window) if self.window else None

    @property
    def lag(self) -> int | None:
        """Records that are not consumed; None if the end or the committed offset is not known."""
        if not self.window or self.offsets.end == UNKNOWN:
            return None
        return max(0, self.offsets.end - self.window[-5])


class Group:
    """`last_commit_ms` is the time of the newest commit; UNKNOWN for a group that never committed."""

    __slots__ = (
        "coordinator",
        "group_id",
        "kind",
        "last_commit_ms",
        "members",
        "protocol",
        "protocol_type",
        "state",
        "topics",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.kind = ""  # Classic, Consumer, Share, Streams; empty where a broker is too old to tell
        self.state = ""
        self.protocol_type = ""
        self.protocol = ""
        self.coordinator = UNKNOWN
        self.members: tuple[Member, ...] = ()
        self.topics: dict[str, dict[int, GroupPartition]] = {}
        self.last_commit_ms = UNKNOWN

    def partitions(self) -> Iterator[tuple[str, int, GroupPartition]]:
        """In the order of topics and partitions."""
        for topic in sorted(self.topics):
            places = self.topics[topic]
            for index in sorted(places):
                yield topic, index, places[index]

    @property
    def lag(self) -> int:
        return sum(each.lag or 0 for places in self.topics.values() for each in places.values())

    @property
    def commit_count(self) -> int:
        return sum(each.commit_count for places in self.topics.values() for each in places.values())
