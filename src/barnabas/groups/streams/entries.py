"""The records of streams groups, with the content that Apache Kafka 4.3.1 writes.

In: members, assignments, topologies. Out: entries for `__consumer_offsets`. Subtopologies are sorted by id
and partitions by number, so that equal states give equal bytes.
Does not know: when to write what.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.groups.basics.records import Entry
from barnabas.groups.streams.member import StreamsMember
from barnabas.groups.streams.tasks import TaskEpochs, Tasks, TaskSets
from barnabas.protocol.log_records import consumer_offsets as log

Member = log.StreamsGroupMemberMetadataValue
Target = log.StreamsGroupTargetAssignmentMemberValue
Current = log.StreamsGroupCurrentMemberAssignmentValue


def epoch(
    group_id: str, epoch: int, metadata_hash: int, topology_epoch: int, configs: Mapping[str, str]
) -> Entry:
    config = log.StreamsGroupMetadataValue.LastAssignmentConfig
    value = log.StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=topology_epoch,
        last_assignment_configs=[config(key=name, value=configs[name]) for name in sorted(configs)],
    )
    return Entry(log.StreamsGroupMetadataKey(group_id=group_id), value)


def no_epoch(group_id: str) -> Entry:
    return Entry(log.StreamsGroupMetadataKey(group_id=group_id), None)


def topology(group_id: str, value: log.StreamsGroupTopologyValue) -> Entry:
    return Entry(log.StreamsGroupTopologyKey(group_id=group_id), value)


def no_topology(group_id: str) -> Entry:
    return Entry(log.StreamsGroupTopologyKey(group_id=group_id), None)


def member(group_id: str, of: StreamsMember) -> Entry:
    endpoint = None
    if of.endpoint is not None:
        endpoint = Member.Endpoint(host=of.endpoint.host, port=of.endpoint.port)
    value = Member(
        instance_id=of.instance_id,
        rack_id=of.rack_id,
        client_id=of.client_id,
        client_host=of.client_host,
        rebalance_timeout_ms=of.rebalance_timeout_ms,
        topology_epoch=of.topology_epoch,
        process_id=of.process_id,
        user_endpoint=endpoint,
        client_tags=[Member.KeyValue(key=key, value=value) for key, value in of.client_tags],
    )
    return Entry(log.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=of.member_id), value)


def no_member(group_id: str, member_id: str) -> Entry:
    return Entry(log.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def target(group_id: str, member_id: str, tasks: Tasks) -> Entry:
    def ids(sets: TaskSets) -> list[Target.TaskIds]:
        return [Target.TaskIds(subtopology_id=name, partitions=sorted(sets[name])) for name in sorted(sets)]

    value = Target(
        active_tasks=ids(tasks.active), standby_tasks=ids(tasks.standby), warmup_tasks=ids(tasks.warmup)
    )
    return Entry(log.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def no_target(group_id: str, member_id: str) -> Entry:
    return Entry(log.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> Entry:
    value = log.StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return Entry(log.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def no_target_epoch(group_id: str) -> Entry:
    return Entry(log.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None)


def current(group_id: str, of: StreamsMember) -> Entry:
    value = Current(
        member_epoch=of.epoch,
        previous_member_epoch=of.previous_epoch,
        state=int(of.state),
        active_tasks=ids_with_epochs(of.assigned.active),
        standby_tasks=plain_ids(of.assigned.standby),
        warmup_tasks=plain_ids(of.assigned.warmup),
        active_tasks_pending_revocation=ids_with_epochs(of.revoking.active),
        standby_tasks_pending_revocation=plain_ids(of.revoking.standby),
        warmup_tasks_pending_revocation=plain_ids(of.revoking.warmup),
    )
    key = log.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=of.member_id)
    return Entry(key, value)


def no_current(group_id: str, member_id: str) -> Entry:
    return Entry(log.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[Entry]:
    """Delete a member. Its assignments come first, as Apache Kafka's replay requires."""
    return [no_current(group_id, member_id), no_target(group_id, member_id), no_member(group_id, member_id)]


def plain_ids(tasks: TaskSets) -> list[Current.TaskIds]:
    return [Current.TaskIds(subtopology_id=name, partitions=sorted(tasks[name])) for name in sorted(tasks)]


def ids_with_epochs(tasks: TaskEpochs) -> list[Current.TaskIds]:
    found = []
    for name in sorted(tasks):
        numbers = sorted(tasks[name])
        epochs = [tasks[name][number] for number in numbers]
        found.append(Current.TaskIds(subtopology_id=name, partitions=numbers, assignment_epochs=epochs))
    return found
