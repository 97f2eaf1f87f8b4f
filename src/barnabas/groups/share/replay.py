"""Applies the records of share groups: the only place where groups are created, changed and deleted.

In: entries that were just decided, or that are replayed from a log, even a compacted one. Out: groups in the
state. Cannot fail: a tombstone for something unknown has no effect.
Does not know: time, metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.groups.basics.records import Entry
from barnabas.groups.share.group import ShareGroup
from barnabas.groups.share.member import ShareMember
from barnabas.groups.share.state import ShareState
from barnabas.groups.share.state_partitions import StatePartitions, TopicState
from barnabas.protocol.log_records import consumer_offsets as log

NO_ASSIGNMENT_EPOCH = -1


def apply(state: ShareState, entry: Entry) -> None:
    key: Any = entry.key
    value = entry.value
    group = state.groups.get(key.group_id)
    if isinstance(key, log.ShareGroupMetadataKey) and value is None:
        remove_group(state, key.group_id)
        return
    if group is None:
        if value is None:
            return
        group = state.groups[key.group_id] = ShareGroup(key.group_id, state.subscribers)
    group.is_settled = False
    if isinstance(key, log.ShareGroupStatePartitionMetadataKey):
        state.set_states(group, states_in(value))
        return
    apply_record = APPLY.get(type(key))
    if apply_record is not None:
        apply_record(group, key, value)


def remove_group(state: ShareState, group_id: str) -> None:
    group = state.groups.pop(group_id, None)
    if group is not None:
        group.leave_index()
        state.set_states(group, None)
        for member_id in group.members:
            state.timers.cancel_all(group_id, member_id)


def epoch(group: ShareGroup, key: Any, value: log.ShareGroupMetadataValue | None) -> None:
    assert value is not None
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash


def member(
    group: ShareGroup,
    key: log.ShareGroupMemberMetadataKey,
    value: log.ShareGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.remove_member(key.member_id)
        group.target.pop(key.member_id, None)
    else:
        group.set_member(known(group, key.member_id).with_subscription(value))


def target(
    group: ShareGroup,
    key: log.ShareGroupTargetAssignmentMemberKey,
    value: log.ShareGroupTargetAssignmentMemberValue | None,
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
    group: ShareGroup, key: Any, value: log.ShareGroupTargetAssignmentMetadataValue | None
) -> None:
    group.assignment_epoch = NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def current(
    group: ShareGroup,
    key: log.ShareGroupCurrentMemberAssignmentKey,
    value: log.ShareGroupCurrentMemberAssignmentValue | None,
) -> None:
    if value is not None:
        group.set_member(known(group, key.member_id).with_assignment(value))
    elif key.member_id in group.members:
        group.set_member(group.members[key.member_id].without_assignment())


def known(group: ShareGroup, member_id: str) -> ShareMember:
    return group.members.get(member_id) or ShareMember(member_id)


def states_in(value: Any) -> StatePartitions | None:
    if value is None:
        return None
    assert isinstance(value, log.ShareGroupStatePartitionMetadataValue)
    initializing, initialized = (
        {topic.topic_id: TopicState(topic.topic_name, frozenset(topic.partitions)) for topic in topics}
        for topics in (value.initializing_topics, value.initialized_topics)
    )
    deleting = frozenset(topic.topic_id for topic in value.deleting_topics)
    return StatePartitions(initializing, initialized, deleting)


APPLY: dict[type, Callable[[ShareGroup, Any, Any], None]] = {
    log.ShareGroupMetadataKey: epoch,
    log.ShareGroupMemberMetadataKey: member,
    log.ShareGroupTargetAssignmentMetadataKey: target_epoch,
    log.ShareGroupTargetAssignmentMemberKey: target,
    log.ShareGroupCurrentMemberAssignmentKey: current,
}
