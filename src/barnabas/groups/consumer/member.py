"""A member of a consumer group: its subscription, its partitions, and how far it has reconciled.

An immutable value: a heartbeat makes a new one, and the records hold the parts that differ. Each partition
has the epoch in which it was assigned, so that commits with an older epoch can be checked (KIP-1251).
Does not know: its group, the target assignment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from barnabas.protocol.log_records.consumer_offsets import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
STATIC_LEAVING_EPOCH = -2
NO_TIMEOUT_MS = -1

Owned = Mapping[bytes, Mapping[int, int]]
"""Topic id -> partition -> the epoch of its assignment. No topic without partitions."""

NOTHING: Owned = {}
ClassicMemberMetadata = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
RecordedPartitions = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions


class MemberState(IntEnum):
    """How far a member has reconciled; the values are those of the records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # must revoke partitions, and has not confirmed it
    UNRELEASED_PARTITIONS = 2  # waits for partitions that others still own
    UNKNOWN = 127  # written by a newer version

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ClassicData:
    """The data of a member that uses the classic protocol within a consumer group."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]  # names with metadata, the preferred one first


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    member_id: str
    epoch: int = JOINING_EPOCH
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NO_TIMEOUT_MS
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str | None = ""  # empty or None: no regular expression
    assignor: str | None = None
    assigned: Owned = field(default_factory=dict)
    revoking: Owned = field(default_factory=dict)
    classic: ClassicData | None = None

    @property
    def is_classic(self) -> bool:
        return self.classic is not None

    def counts_same_as(self, other: ConsumerMember) -> bool:
        """Whether both add the same to the group's counts."""
        return (
            self.topics == other.topics
            and self.regex == other.regex
            and self.assignor == other.assignor
            and self.classic == other.classic
        )

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def moved_to(self, epoch: int, state: MemberState, assigned: Owned, revoking: Owned) -> ConsumerMember:
        """The member after one step. `previous_epoch` is the epoch before it, even if that is the same."""
        return replace(
            self, epoch=epoch, previous_epoch=self.epoch, state=state, assigned=assigned, revoking=revoking
        )

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch in which the member got the partition; None if it does not own it. Revoking ones
        count."""
        found = self.assigned.get(topic_id, {}).get(partition)
        return found if found is not None else self.revoking.get(topic_id, {}).get(partition)

    def with_subscription(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
        metadata = value.classic_member_metadata
        classic = None
        if metadata is not None:
            protocols = tuple((each.name, bytes(each.metadata)) for each in metadata.supported_protocols)
            classic = ClassicData(metadata.session_timeout_ms, protocols)
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=classic,
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=owned(value.assigned_partitions, value.member_epoch),
            revoking=owned(value.partitions_pending_revocation, value.member_epoch),
        )

    def without_assignment(self) -> ConsumerMember:
        return replace(self, epoch=-1, previous_epoch=-1, assigned=NOTHING, revoking=NOTHING)


def owned(recorded: list[RecordedPartitions], epoch: int) -> Owned:
    """The partitions of a record. Records from before 4.2 have no assignment epochs: the member's epoch
    counts."""
    found: dict[bytes, dict[int, int]] = {}
    for topic in recorded:
        epochs = topic.assignment_epochs
        if not epochs or len(epochs) != len(topic.partitions):
            epochs = [epoch] * len(topic.partitions)
        found[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return found
