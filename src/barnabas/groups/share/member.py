"""A member of a share group: its subscription and the partitions that it reads.

An immutable value: a heartbeat makes a new one, and the records hold the parts that differ. Members share
partitions, so a member moves to a new target in one step, without revoking anything first.
Does not know: its group, the target assignment.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from barnabas.groups.assignors.spec import Assignment
from barnabas.protocol.log_records.consumer_offsets import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
)

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
STABLE = 0  # the only state of a member that is written


@dataclass(frozen=True, slots=True)
class ShareMember:
    member_id: str
    epoch: int = JOINING_EPOCH
    previous_epoch: int = -1
    state: int = STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    assigned: Assignment = field(default_factory=dict)

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state == STABLE and self.epoch == epoch

    def with_subscription(self, value: ShareGroupMemberMetadataValue) -> ShareMember:
        return replace(
            self,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
        )

    def with_assignment(self, value: ShareGroupCurrentMemberAssignmentValue) -> ShareMember:
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=value.state,
            assigned={
                topic.topic_id: frozenset(topic.partitions)
                for topic in value.assigned_partitions
                if topic.partitions
            },
        )

    def without_assignment(self) -> ShareMember:
        return replace(self, epoch=LEAVING_EPOCH, previous_epoch=LEAVING_EPOCH, assigned={})
