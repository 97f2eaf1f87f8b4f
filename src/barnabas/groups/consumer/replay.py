"""Applies the records of consumer groups: the only place where groups are created, changed and deleted.

In: entries that were just decided, or that are replayed from a log, even a compacted one. Out: groups in the
state. Cannot fail: a tombstone for something unknown has no effect.
Does not know: time, metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.groups.basics.records import Entry
from barnabas.groups.consumer.group import ConsumerGroup, ResolvedRegex
from barnabas.groups.consumer.member import ConsumerMember
from barnabas.groups.consumer.state import ConsumerState
from barnabas.protocol.log_records import consumer_offsets as log

NO_ASSIGNMENT_EPOCH = -1


def apply(state: ConsumerState, entry: Entry) -> None:
    key: Any = entry.key
    value = entry.value
    group = state.groups.get(key.group_id)
    if isinstance(key, log.ConsumerGroupMetadataKey) and value is None:
        remove_group(state, key.group_id)
        return
    if group is None:
        if value is None:
            return
        group = state.groups[key.group_id] = ConsumerGroup(key.group_id, state.subscribers)
    apply_record = APPLY.get(type(key))
    if apply_record is not None:
        apply_record(group, key, value)


def remove_group(state: ConsumerState, group_id: str) -> None:
    group = state.groups.pop(group_id, None)
    state.viewers.pop(group_id, None)
    state.describable.forget(group_id)
    if group is not None:
        group.leave_index()
        for member_id in group.members:
            state.timers.cancel_all(group_id, member_id)


def epoch(group: ConsumerGroup, key: Any, value: log.ConsumerGroupMetadataValue | None) -> None:
    assert value is not None
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash


def partition_metadata(group: ConsumerGroup, key: Any, value: object | None) -> None:
    group.has_partition_metadata = value is not None


def member(
    group: ConsumerGroup,
    key: log.ConsumerGroupMemberMetadataKey,
    value: log.ConsumerGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.remove_member(key.member_id)
        group.target.pop(key.member_id, None)
    else:
        group.set_member(known(group, key.member_id).with_subscription(value))


def target(
    group: ConsumerGroup,
    key: log.ConsumerGroupTargetAssignmentMemberKey,
    value: log.ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.target.pop(key.member_id, None)
    else:
        group.target[key.member_id] = {
            topic.topic_id: frozenset(topic.partitions)
            for topic in value.topic_partitions
            if topic.partitions
        }


def target_epoch(
    group: ConsumerGroup, key: Any, value: log.ConsumerGroupTargetAssignmentMetadataValue | None
) -> None:
    group.assignment_epoch = NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def current(
    group: ConsumerGroup,
    key: log.ConsumerGroupCurrentMemberAssignmentKey,
    value: log.ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    if value is not None:
        group.set_member(known(group, key.member_id).with_assignment(value))
    elif key.member_id in group.members:
        group.set_member(group.members[key.member_id].without_assignment())


def regex(
    group: ConsumerGroup,
    key: log.ConsumerGroupRegularExpressionKey,
    value: log.ConsumerGroupRegularExpressionValue | None,
) -> None:
    resolved = None
    if value is not None:
        resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
    group.set_resolved(key.regular_expression, resolved)


def known(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    return group.members.get(member_id) or ConsumerMember(member_id)


APPLY: dict[type, Callable[[ConsumerGroup, Any, Any], None]] = {
    log.ConsumerGroupMetadataKey: epoch,
    log.ConsumerGroupPartitionMetadataKey: partition_metadata,
    log.ConsumerGroupMemberMetadataKey: member,
    log.ConsumerGroupTargetAssignmentMetadataKey: target_epoch,
    log.ConsumerGroupTargetAssignmentMemberKey: target,
    log.ConsumerGroupCurrentMemberAssignmentKey: current,
    log.ConsumerGroupRegularExpressionKey: regex,
}
