"""One consumer group as its records define it: epochs, members, target assignment, resolved regular
expressions.

In: members and other facts, as `replay` reads them from records. Out: lookups for decisions: how many members
read a topic, who owns a partition, which assignor most members want. Every change updates the indexes.
Does not know: time, metadata, requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from barnabas.groups.assignors.spec import NO_PARTITIONS, Assignment
from barnabas.groups.basics.counts import add, add_all
from barnabas.groups.basics.subscribers import Subscribers
from barnabas.groups.consumer.member import ConsumerMember, Owned

FIRST_EPOCH = 1  # of a group without members; the first member makes it 2


class ConsumerGroupState(StrEnum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    topics: frozenset[str] = frozenset()
    version: int = 0  # offset of the metadata that was searched
    timestamp_ms: int = 0


class ConsumerGroup:
    __slots__ = (
        "_assignment_epoch",
        "_reconciled_count",
        "_subscribers",
        "assignment_timestamp_ms",
        "assignor_counts",
        "classic_count",
        "classic_protocol_counts",
        "epoch",
        "group_id",
        "has_partition_metadata",
        "members",
        "metadata_hash",
        "metadata_is_fresh",
        "owner_epochs",
        "regex_counts",
        "resolved",
        "static_members",
        "target",
        "topic_counts",
        "topic_regex_counts",
    )

    def __init__(self, group_id: str, subscribers: Subscribers[ConsumerGroup] | None = None) -> None:
        """`subscribers` is the index of the shard; a group outside the shard has none."""
        self._subscribers = subscribers
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.has_partition_metadata = False  # a record from before 4.1 still exists
        self._assignment_epoch = FIRST_EPOCH
        self._reconciled_count = 0  # members reconciled to the assignment epoch
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.target: dict[str, Assignment] = {}
        self.resolved: dict[str, ResolvedRegex] = {}
        self.topic_counts: dict[str, int] = {}  # members that named a topic
        self.topic_regex_counts: dict[str, int] = {}  # resolved expressions that match a topic
        self.regex_counts: dict[str, int] = {}  # members that sent an expression
        self.assignor_counts: dict[str, int] = {}
        self.owner_epochs: dict[bytes, dict[int, int]] = {}  # topic -> partition -> epoch of its owner
        self.classic_count = 0
        self.classic_protocol_counts: dict[str, int] = {}
        self.metadata_is_fresh = False  # not recorded: the hash was compared since topics last changed

    # Lookups

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self._assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if self._reconciled_count == len(self.members):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def assignment_epoch(self) -> int:
        return self._assignment_epoch

    @assignment_epoch.setter
    def assignment_epoch(self, epoch: int) -> None:
        self._assignment_epoch = epoch
        self._reconciled_count = sum(member.is_reconciled_to(epoch) for member in self.members.values())

    def owner_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch of the member that owns a partition or still has to revoke it; None if it is free."""
        return self.owner_epochs.get(topic_id, {}).get(partition)

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member_id: str, instance_id: str | None) -> Assignment:
        """The target of a member. A static member that rejoins gets the target of its previous
        incarnation."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, member_id)
        return self.target.get(member_id, NO_PARTITIONS)

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.topic_counts or topic in self.topic_regex_counts

    def subscribed_topics(self) -> set[str]:
        return {*self.topic_counts, *self.topic_regex_counts}

    def preferred_assignor(
        self, before: ConsumerMember | None = None, after: ConsumerMember | None = None
    ) -> str | None:
        """The assignor that most members want, with `after` in the place of `before`."""
        counts = dict(self.assignor_counts)
        if before is not None and before.assignor is not None:
            add(counts, before.assignor, -1)
        if after is not None and after.assignor is not None:
            add(counts, after.assignor, 1)
        return min(counts, key=lambda name: (-counts[name], name)) if counts else None

    # Changes

    def set_member(self, member: ConsumerMember) -> None:
        before = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._reconciled_count += member.is_reconciled_to(self._assignment_epoch)
        if before is not None:
            self._reconciled_count -= before.is_reconciled_to(self._assignment_epoch)
            self._disown(before.assigned, before.epoch)
            self._disown(before.revoking, before.epoch)
        if before is None or not member.counts_same_as(before):
            self._count(member, 1)
            if before is not None:
                self._count(before, -1)
        self._own(member.assigned, member.epoch)
        self._own(member.revoking, member.epoch)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._reconciled_count -= member.is_reconciled_to(self._assignment_epoch)
        self._count(member, -1)
        self._disown(member.assigned, member.epoch)
        self._disown(member.revoking, member.epoch)
        instance_id = member.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member_id:
            del self.static_members[instance_id]

    def set_resolved(self, pattern: str, resolved: ResolvedRegex | None) -> None:
        before = self.resolved.pop(pattern, None)
        if resolved is not None:
            self.resolved[pattern] = resolved
            self._read(self.topic_regex_counts, resolved.topics, 1)
        if before is not None:
            self._read(self.topic_regex_counts, before.topics, -1)

    def leave_index(self) -> None:
        """Remove the group from its shard's index."""
        index, self._subscribers = self._subscribers, None
        if index is not None:
            for topic in self.subscribed_topics():
                index.remove(topic, self)

    def _read(self, counts: dict[str, int], topics: Iterable[str], by: int) -> None:
        index = self._subscribers
        for topic in topics:
            add(counts, topic, by)
            if index is not None:
                if by > 0:
                    if counts[topic] == 1:
                        index.add(topic, self)
                elif not self.is_subscribed(topic):
                    index.remove(topic, self)

    def _count(self, member: ConsumerMember, by: int) -> None:
        self._read(self.topic_counts, member.topics, by)
        if member.regex:
            add(self.regex_counts, member.regex, by)
        if member.assignor is not None:
            add(self.assignor_counts, member.assignor, by)
        if member.classic is not None:
            self.classic_count += by
            add_all(self.classic_protocol_counts, (name for name, _ in member.classic.protocols), by)

    def _own(self, partitions: Owned, epoch: int) -> None:
        for topic_id, numbers in partitions.items():
            epochs = self.owner_epochs.setdefault(topic_id, {})
            for number in numbers:
                # A compacted log may name two owners for a while: the later epoch is right.
                epochs[number] = max(epoch, epochs.get(number, epoch))

    def _disown(self, partitions: Owned, epoch: int) -> None:
        for topic_id, numbers in partitions.items():
            epochs = self.owner_epochs.get(topic_id)
            if epochs is None:
                continue
            for number in numbers:
                if epochs.get(number) == epoch:
                    del epochs[number]
            if not epochs:
                del self.owner_epochs[topic_id]
