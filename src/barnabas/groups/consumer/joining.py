"""Finds the member that sent a heartbeat: a known one or one that joins.

In: a group and a request. Out: the member as it is before the request, and the records that replace the
previous incarnation of a static member. Raises KafkaError for members that are unknown, fenced or rejoin too
early.
Does not know: subscriptions, assignments.
"""

from __future__ import annotations

from dataclasses import replace

from barnabas.groups.basics.records import Entry
from barnabas.groups.consumer import entries
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.member import JOINING_EPOCH, STATIC_LEAVING_EPOCH, ConsumerMember
from barnabas.groups.consumer.reconciliation import Reported
from barnabas.protocol import ErrorCode, KafkaError


def check_size(group: ConsumerGroup, member_id: str, size_max: int) -> None:
    if len(group.members) >= size_max and member_id not in group.members:
        message = f"The consumer group has reached its maximum capacity of {size_max} members."
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def dynamic_member(
    group: ConsumerGroup, member_id: str, epoch: int, reported: Reported | None
) -> ConsumerMember:
    member = group.members.get(member_id)
    if member is None:
        if epoch != JOINING_EPOCH:
            message = f"Member {member_id} is not a member of group {group.group_id}."
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return ConsumerMember(member_id)
    check_epoch(member, epoch, reported)
    return member


def static_member(
    group: ConsumerGroup, member_id: str, instance_id: str, epoch: int, reported: Reported | None
) -> tuple[ConsumerMember, list[Entry]]:
    existing = group.static_member(instance_id)
    if epoch != JOINING_EPOCH:
        existing = check_instance(existing, member_id, instance_id)
        check_epoch(existing, epoch, reported)
        return existing, []
    if existing is None:
        return group.members.get(member_id) or ConsumerMember(member_id), []
    if not existing.is_classic and existing.epoch != STATIC_LEAVING_EPOCH:
        message = (
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
            f"instance id is owned by {existing.member_id} member."
        )
        raise KafkaError(ErrorCode.UNRELEASED_INSTANCE_ID, message)
    return replace_static(group, existing, member_id)


def replace_static(
    group: ConsumerGroup, existing: ConsumerMember, member_id: str
) -> tuple[ConsumerMember, list[Entry]]:
    """The same member under a new id, with everything that it had."""
    member = replace(existing, member_id=member_id, epoch=JOINING_EPOCH, previous_epoch=0)
    group_id = group.group_id
    records = entries.member_tombstones(group_id, existing.member_id)
    records.append(entries.member(group_id, member))
    records.append(entries.target(group_id, member_id, group.target.get(existing.member_id, {})))
    records.append(entries.current(group_id, member))
    return member, records


def check_instance(existing: ConsumerMember | None, member_id: str, instance_id: str) -> ConsumerMember:
    if existing is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if existing.member_id != member_id:
        message = (
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{existing.member_id}."
        )
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, message)
    return existing


def check_epoch(member: ConsumerMember, epoch: int, reported: Reported | None) -> None:
    """A member must send its epoch, or the previous one: the response with the new one may have been lost."""
    if epoch in (JOINING_EPOCH, member.epoch):
        return
    if epoch > member.epoch:
        refuse("greater", epoch, member)
    if epoch != member.previous_epoch or not is_part(reported, member):
        refuse("smaller", epoch, member)


def is_part(reported: Reported | None, member: ConsumerMember) -> bool:
    """Whether the member owns nothing beyond its assignment."""
    if reported is None:
        return False
    return all(
        topic_id in member.assigned and partitions <= member.assigned[topic_id].keys()
        for topic_id, partitions in reported.items()
    )


def refuse(relation: str, epoch: int, member: ConsumerMember) -> None:
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {relation} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
    )
