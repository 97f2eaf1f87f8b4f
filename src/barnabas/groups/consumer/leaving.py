"""How members go: they leave, are fenced for silence or slowness, or leave temporarily as static members.

In: a group and the members that go. Out: records. The group's epoch grows, so that others get the partitions.
Does not know: requests of the classic protocol, time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from barnabas.groups.basics.counts import add, add_all
from barnabas.groups.basics.outcome import Outcome
from barnabas.groups.basics.records import Entry
from barnabas.groups.consumer import entries
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.joining import check_instance
from barnabas.groups.consumer.member import NOTHING, STATIC_LEAVING_EPOCH, ConsumerMember
from barnabas.groups.consumer.state import ConsumerState
from barnabas.metadata.image import MetadataImage
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def find_leaver(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    """The member that leaves."""
    if request.instance_id is not None:
        existing = group.static_member(request.instance_id)
        return check_instance(existing, request.member_id, request.instance_id)
    member = group.members.get(request.member_id)
    if member is None:
        message = f"Member {request.member_id} is not a member of group {group.group_id}."
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)
    return member


def pause(group: ConsumerGroup, member: ConsumerMember) -> Outcome:
    """Let a static member leave temporarily: its partitions stay assigned until its session expires."""
    paused = replace(
        member,
        epoch=STATIC_LEAVING_EPOCH,
        revoking=NOTHING,
        assigned={topic_id: dict.fromkeys(held, 0) for topic_id, held in member.assigned.items()},
    )
    reply = ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=STATIC_LEAVING_EPOCH)
    return Outcome(records=[entries.current(group.group_id, paused)], reply=reply)


def remove(
    state: ConsumerState, group: ConsumerGroup, members: Iterable[ConsumerMember], image: MetadataImage
) -> list[Entry]:
    """Remove some members of a group, with one new epoch."""
    removed = list(members)
    group_id = group.group_id
    records: list[Entry] = []
    topics = dict(group.topic_counts)
    by_regex = dict(group.topic_regex_counts)
    expressions = dict(group.regex_counts)
    for member in removed:
        records.extend(entries.member_tombstones(group_id, member.member_id))
        add_all(topics, member.topics, -1)
        if member.regex:
            add(expressions, member.regex, -1)
    for pattern in sorted(group.regex_counts.keys() - expressions.keys()):
        records.append(entries.no_regex(group_id, pattern))
        if pattern in group.resolved:
            add_all(by_regex, group.resolved[pattern].topics, -1)
    metadata_hash = state.hashes.of_group({*topics, *by_regex}, image)
    records.append(entries.epoch(group_id, group.epoch + 1, metadata_hash))
    for member in removed:
        state.timers.cancel_all(group_id, member.member_id)
    return records


def tombstones(group: ConsumerGroup) -> list[Entry]:
    """The records that delete the group."""
    group_id = group.group_id
    return [
        *(entries.no_current(group_id, member_id) for member_id in group.members),
        *(entries.no_target(group_id, member_id) for member_id in group.members),
        entries.no_target_epoch(group_id),
        *(entries.no_member(group_id, member_id) for member_id in group.members),
        *(entries.no_regex(group_id, pattern) for pattern in group.resolved),
        entries.no_partition_metadata(group_id),
        entries.no_epoch(group_id),
    ]
