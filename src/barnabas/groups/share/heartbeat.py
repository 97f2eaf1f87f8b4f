"""The decision about a member's heartbeat in a share group: its response and its records.

In: a request that passed `validation`. Out: an outcome, and the partitions that need state. In order: find
the member, apply what it changed, compute the group's epoch, compute a target if one is due, move the member
to it. Most heartbeats change nothing: they get their response at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from barnabas.groups.assignors.spec import NO_PARTITIONS, Assignment
from barnabas.groups.basics.assignment_interval import is_target_due
from barnabas.groups.basics.outcome import Caller, Outcome
from barnabas.groups.basics.records import Entry
from barnabas.groups.share import entries, initialization, target
from barnabas.groups.share.group import ShareGroup
from barnabas.groups.share.member import JOINING_EPOCH, STABLE, ShareMember
from barnabas.groups.share.state import Due, ShareState
from barnabas.groups.share.state_partitions import NO_STATE, Topics
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

Request = ShareGroupHeartbeatRequest
Response = ShareGroupHeartbeatResponse


@dataclass(slots=True)
class Decision:
    outcome: Outcome
    epoch: int  # of the group after it
    missing: Topics  # partitions that need state with the share coordinator


def respond_if_unchanged(
    state: ShareState, request: Request, caller: Caller, image: MetadataImage, now_ms: int
) -> Outcome | None:
    """The response to a heartbeat that changes nothing; None for all others."""
    group = state.groups.get(request.group_id)
    member = group.members.get(request.member_id) if group is not None else None
    if group is None or member is None or not is_unchanged(group, member, request, caller):
        return None
    return Outcome(reply=renew_and_respond(state, group, member, image, now_ms))


def is_unchanged(group: ShareGroup, member: ShareMember, request: Request, caller: Caller) -> bool:
    """Whether the member has reached the target and reports nothing new, and the group waits for nothing."""
    return (
        request.member_epoch == member.epoch == group.assignment_epoch == group.epoch
        and request.member_epoch > JOINING_EPOCH
        and group.is_settled
        and group.metadata_is_fresh
        and member.state == STABLE
        and request.subscribed_topic_names is None
        and request.rack_id is None
        and caller.client_id == member.client_id
        and caller.client_host == member.client_host
    )


def renew_and_respond(
    state: ShareState, group: ShareGroup, member: ShareMember, image: MetadataImage, now_ms: int
) -> Response:
    """Renew the member's session, and return the minimal response."""
    times = state.times(group.group_id, image)
    state.timers.set(Due.SESSION, group.group_id, member.member_id, now_ms + times.session_timeout_ms)
    return Response(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=times.heartbeat_interval_ms,
    )


def heartbeat(
    state: ShareState, group: ShareGroup, request: Request, caller: Caller, clock: tuple[int, MetadataImage]
) -> Steps[Decision]:
    """Decide a heartbeat of an existing group, or of a new one that its first records create. In steps,
    because a new assignment of a thousand members takes long."""
    now_ms, image = clock
    check_size(group, request.member_id, state.settings.share_group_size_max)
    before = member_for(group, request.member_id, request.member_epoch)
    after = with_request(before, request, caller)
    records: list[Entry] = []
    if after != before:
        records.append(entries.member(group.group_id, after))
    bump = after.topics != before.topics
    if not bump and group.assignment_epoch >= group.epoch:
        bump = group.has_unassigned()
    epoch = group.epoch
    names = group.topics_after(before, after)
    if bump or not group.metadata_is_fresh:
        metadata_hash = yield from state.hashes.of_group_in_steps(names, image)
        bump = bump or metadata_hash != group.metadata_hash
        if bump:
            epoch += 1
            records.append(entries.epoch(group.group_id, epoch, metadata_hash))
    goal_epoch, assignment = yield from goal_of(state, group, after, epoch, records, clock)
    moved = move(after, goal_epoch, assignment, image, bump)
    if moved != after:
        records.append(entries.current(group.group_id, moved))
    missing = yield from initialization.uninitialized(state, group, names, clock)
    group.metadata_is_fresh = True  # last, so that a failure above is retried
    group.is_settled = not records and not missing and not (group.states or NO_STATE).initializing
    state.rebalances.share += bump
    reply = renew_and_respond(state, group, moved, image, now_ms)
    is_full = request.member_epoch == JOINING_EPOCH or request.subscribed_topic_names is not None
    if is_full or moved.assigned != before.assigned:
        reply.assignment = assignment_response(moved.assigned)
    return Decision(Outcome(records=records, reply=reply), epoch, missing)


def check_size(group: ShareGroup, member_id: str, size_max: int) -> None:
    if len(group.members) >= size_max and member_id not in group.members:
        message = f"The share group has reached its maximum capacity of {size_max} members."
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def member_for(group: ShareGroup, member_id: str, epoch: int) -> ShareMember:
    """The member that sent a heartbeat: a known one or one that joins."""
    member = group.members.get(member_id)
    if member is None:
        if epoch != JOINING_EPOCH:
            message = f"Member {member_id} is not a member of group {group.group_id}."
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return ShareMember(member_id)
    # A member may send its previous epoch: the response with the new one may have been lost.
    if epoch in (JOINING_EPOCH, member.epoch, member.previous_epoch) and epoch <= member.epoch:
        return member
    known = f"member epoch ({epoch}) than the one known by the group coordinator ({member.epoch})"
    if epoch > member.epoch:
        message = f"The share group member has a greater {known}. "
    else:
        message = (
            f"The share group member has a smaller {known}, and it does not match the previous member epoch "
            f"({member.previous_epoch}). "
        )
    message += "The member must abandon all its partitions and rejoin."
    raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, message)


def with_request(member: ShareMember, request: Request, caller: Caller) -> ShareMember:
    """The member with the request's values; absent fields stay as they were."""
    names = request.subscribed_topic_names
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        topics=member.topics if names is None else frozenset(names),
        client_id=caller.client_id,
        client_host=caller.client_host,
    )


def goal_of(
    state: ShareState,
    group: ShareGroup,
    member: ShareMember,
    epoch: int,
    records: list[Entry],
    clock: tuple[int, MetadataImage],
) -> Steps[tuple[int, Assignment]]:
    """Epoch and target of the member: new ones if the group's epoch has advanced and the last target is old
    enough."""
    now_ms, image = clock
    interval_ms = state.times(group.group_id, image).assignment_interval_ms
    last_ms = group.assignment_timestamp_ms
    if epoch > group.assignment_epoch and is_target_due(last_ms, interval_ms, now_ms):
        computed = yield from target.compute(state, group, epoch, member, clock)
        records.extend(computed.records)
        return epoch, computed.assignment
    return group.assignment_epoch, group.target.get(member.member_id, NO_PARTITIONS)


def move(
    member: ShareMember, epoch: int, assignment: Assignment, image: MetadataImage, has_changed: bool
) -> ShareMember:
    """The member with its target, without topics that it does not subscribe to."""
    if member.epoch == epoch and not has_changed:
        return member
    by_id = image.topics.by_id
    assigned = {
        topic_id: partitions
        for topic_id, partitions in assignment.items()
        if topic_id in by_id and by_id[topic_id].name in member.topics
    }
    if member.epoch == epoch:
        return replace(member, assigned=assigned)
    return replace(member, state=STABLE, epoch=epoch, previous_epoch=member.epoch, assigned=assigned)


def assignment_response(assigned: Assignment) -> Response.Assignment:
    return Response.Assignment(
        topic_partitions=[
            Response.TopicPartitions(topic_id=topic_id, partitions=sorted(assigned[topic_id]))
            for topic_id in sorted(assigned)
        ]
    )
