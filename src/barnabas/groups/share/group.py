"""One share group as its records define it: epochs, members, target assignment, partitions with state.

In: members and other facts, as `replay` reads them from records. Out: lookups for decisions. Every change
updates the indexes, and makes the next heartbeat look at the whole group again (`is_settled`).
Does not know: time, metadata, requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from barnabas.groups.assignors.spec import Assignment
from barnabas.groups.basics.counts import add
from barnabas.groups.basics.subscribers import Subscribers
from barnabas.groups.share.member import ShareMember
from barnabas.groups.share.state_partitions import StatePartitions

FIRST_EPOCH = 1  # of a group without members; the first member makes it 2


class ShareGroupState(StrEnum):
    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"


class ShareGroup:
    __slots__ = (
        "_subscribers",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "epoch",
        "group_id",
        "is_settled",
        "members",
        "metadata_hash",
        "metadata_is_fresh",
        "states",
        "target",
        "topic_counts",
    )

    def __init__(self, group_id: str, subscribers: Subscribers[ShareGroup] | None = None) -> None:
        """`subscribers` is the index of the shard; a group outside the shard has none."""
        self._subscribers = subscribers
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ShareMember] = {}
        self.target: dict[str, Assignment] = {}
        self.topic_counts: dict[str, int] = {}  # members that named a topic
        self.states: StatePartitions | None = None  # None: there is no record of them
        # Not recorded:
        self.metadata_is_fresh = False  # the hash was compared since topics last changed
        self.is_settled = False  # nothing to initialize or to assign, as of the last heartbeat

    # Lookups

    @property
    def state(self) -> ShareGroupState:
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    def topics_after(self, before: ShareMember, after: ShareMember | None) -> set[str]:
        """The topics that the group reads with `after` in the place of `before`."""
        now_read = after.topics if after is not None else frozenset()
        dropped = {name for name in before.topics - now_read if self.topic_counts.get(name) == 1}
        return {*(self.topic_counts.keys() - dropped), *now_read}

    def has_unassigned(self) -> bool:
        """Whether a subscribed topic has initialized partitions that the target does not assign."""
        if self.states is None or not self.states.initialized or not self.topic_counts:
            return False
        assigned: dict[bytes, set[int]] = {}
        for target in self.target.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return any(
            topic.name in self.topic_counts and assigned.get(topic_id, set()) != topic.partitions
            for topic_id, topic in self.states.initialized.items()
        )

    # Changes

    def set_member(self, member: ShareMember) -> None:
        before = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if before is None or before.topics != member.topics:
            self._read(member.topics, 1)
            if before is not None:
                self._read(before.topics, -1)

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._read(member.topics, -1)

    def leave_index(self) -> None:
        """Remove the group from its shard's index."""
        index, self._subscribers = self._subscribers, None
        if index is not None:
            for topic in self.topic_counts:
                index.remove(topic, self)

    def _read(self, topics: Iterable[str], by: int) -> None:
        counts, index = self.topic_counts, self._subscribers
        for topic in topics:
            add(counts, topic, by)
            if index is not None:
                if by > 0:
                    if counts[topic] == 1:
                        index.add(topic, self)
                elif topic not in counts:
                    index.remove(topic, self)
