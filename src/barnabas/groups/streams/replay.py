"""Applies the records of streams groups: the only place where groups are created, changed and deleted.

In: entries that were just decided, or that are replayed from a log, even a compacted one. Out: groups in the
state. Cannot fail: a tombstone for something unknown has no effect.
Does not know: time, metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.groups.basics.records import Entry
from barnabas.groups.streams.group import StreamsGroup
from barnabas.groups.streams.member import StreamsMember
from barnabas.groups.streams.state import WHOLE_GROUP, StreamsState
from barnabas.groups.streams.tasks import Tasks, task_sets
from barnabas.groups.streams.topology import from_value
from barnabas.protocol.log_records import consumer_offsets as log

NO_ASSIGNMENT_EPOCH = -1


def apply(state: StreamsState, entry: Entry) -> None:
    key: Any = entry.key
    value = entry.value
    group = state.groups.get(key.group_id)
    if isinstance(key, log.StreamsGroupMetadataKey) and value is None:
        remove_group(state, key.group_id)
        return
    if group is None:
        if value is None:
            return
        group = state.groups[key.group_id] = StreamsGroup(key.group_id, state.subscribers)
    apply_record = APPLY.get(type(key))
    if apply_record is not None:
        apply_record(group, key, value)


def remove_group(state: StreamsState, group_id: str) -> None:
    group = state.groups.pop(group_id, None)
    state.missing_topics.pop(group_id, None)
    state.timers.cancel_all(group_id, WHOLE_GROUP)
    if group is not None:
        group.leave_index()
        for member_id in group.members:
            state.timers.cancel_all(group_id, member_id)


def epoch(group: StreamsGroup, key: Any, value: log.StreamsGroupMetadataValue | None) -> None:
    assert value is not None
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash
    group.validated_topology_epoch = value.validated_topology_epoch
    group.assignment_configs = {each.key: each.value for each in value.last_assignment_configs or ()}


def topology(group: StreamsGroup, key: Any, value: log.StreamsGroupTopologyValue | None) -> None:
    group.set_topology(None if value is None else from_value(value))


def member(
    group: StreamsGroup,
    key: log.StreamsGroupMemberMetadataKey,
    value: log.StreamsGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.remove_member(key.member_id)
        group.target.pop(key.member_id, None)
    else:
        group.set_member(known(group, key.member_id).with_metadata(value))


def target(
    group: StreamsGroup,
    key: log.StreamsGroupTargetAssignmentMemberKey,
    value: log.StreamsGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.target.pop(key.member_id, None)
    else:
        group.target[key.member_id] = Tasks(
            task_sets(value.active_tasks), task_sets(value.standby_tasks), task_sets(value.warmup_tasks)
        )


def target_epoch(
    group: StreamsGroup, key: Any, value: log.StreamsGroupTargetAssignmentMetadataValue | None
) -> None:
    group.assignment_epoch = NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def current(
    group: StreamsGroup,
    key: log.StreamsGroupCurrentMemberAssignmentKey,
    value: log.StreamsGroupCurrentMemberAssignmentValue | None,
) -> None:
    if value is not None:
        group.set_member(known(group, key.member_id).with_assignment(value))
    elif key.member_id in group.members:
        group.set_member(group.members[key.member_id].without_assignment())


def known(group: StreamsGroup, member_id: str) -> StreamsMember:
    return group.members.get(member_id) or StreamsMember(member_id)


APPLY: dict[type, Callable[[StreamsGroup, Any, Any], None]] = {
    log.StreamsGroupMetadataKey: epoch,
    log.StreamsGroupTopologyKey: topology,
    log.StreamsGroupMemberMetadataKey: member,
    log.StreamsGroupTargetAssignmentMetadataKey: target_epoch,
    log.StreamsGroupTargetAssignmentMemberKey: target,
    log.StreamsGroupCurrentMemberAssignmentKey: current,
}
