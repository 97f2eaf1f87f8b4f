"""Members that use the classic protocol within a consumer group: join, sync, heartbeat, leave.

In: their requests. Out: outcomes. A join acts as a full heartbeat, a sync fetches the assignment, and
REBALANCE_IN_PROGRESS tells such a member that its assignment changed.
Does not know: how a group changes its kind (`migration`).
"""

from __future__ import annotations

from dataclasses import replace

from barnabas.groups.basics.outcome import Caller, Outcome
from barnabas.groups.basics.records import Entry
from barnabas.groups.classic.member import protocols_of
from barnabas.groups.classic.rebalance import join_refusal
from barnabas.groups.consumer import embedded
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.heartbeat import advance_member, new_member_id
from barnabas.groups.consumer.joining import check_instance, check_size, replace_static
from barnabas.groups.consumer.member import ClassicData, ConsumerMember, MemberState
from barnabas.groups.consumer.migration import DISABLED
from barnabas.groups.consumer.state import ConsumerState, Due
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import at_once
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_TYPE = "consumer"
KNOWN_MEMBER_VERSION = 4  # of JoinGroup: a new dynamic member first gets an id
BATCHED_LEAVE_VERSION = 3
PROTOCOL_REQUIRED_VERSION = 5  # of SyncGroup: protocol type and name are required
NO_TIMEOUT_MS = -1


def check_join(state: ConsumerState, group: ConsumerGroup, request: JoinGroupRequest, member_id: str) -> None:
    if state.settings.consumer_migration_policy == DISABLED:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    check_size(group, member_id, state.settings.consumer_group_size_max)
    count, speakers = group.classic_count, group.classic_protocol_counts
    is_spoken = any(speakers.get(protocol.name, 0) == count for protocol in request.protocols)
    if request.protocol_type != PROTOCOL_TYPE or not is_spoken:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def joining_member(
    group: ConsumerGroup, request: JoinGroupRequest, member_id: str
) -> tuple[ConsumerMember, list[Entry]]:
    """The member before this join. A static member replaces its previous incarnation."""
    instance_id = request.group_instance_id
    if instance_id is None:
        return group.members.get(member_id) or ConsumerMember(member_id), []
    existing = group.static_member(instance_id)
    if request.member_id:
        return check_instance(existing, member_id, instance_id), []
    if existing is None:
        return ConsumerMember(member_id), []
    return replace_static(group, existing, member_id)


def with_join(member: ConsumerMember, request: JoinGroupRequest, caller: Caller) -> ConsumerMember:
    protocols = protocols_of(request)
    subscription = embedded.subscription(protocols[0][1])
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT_MS else timeout_ms,
        topics=frozenset(subscription.topics),
        regex="",
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic=ClassicData(request.session_timeout_ms, protocols),
    )


def join(
    state: ConsumerState,
    group: ConsumerGroup,
    request: JoinGroupRequest,
    caller: Caller,
    clock: tuple[int, MetadataImage],
) -> Outcome:
    now_ms, image = clock
    member_id = request.member_id or new_member_id(state.rng)
    check_join(state, group, request, member_id)
    if not request.member_id and caller.version >= KNOWN_MEMBER_VERSION and request.group_instance_id is None:
        return Outcome(reply=join_refusal(ErrorCode.MEMBER_ID_REQUIRED, caller.version, member_id))
    before, records = joining_member(group, request, member_id)
    after = with_join(before, request, caller)
    assert after.classic is not None
    reported = embedded.owned(embedded.subscription(after.classic.protocols[0][1]), image)
    after = at_once(advance_member(state, group, before, after, reported, records, clock))
    state.timers.cancel(Due.JOIN, group.group_id, member_id)
    state.timers.set(Due.SESSION, group.group_id, member_id, now_ms + request.session_timeout_ms)
    state.timers.set(Due.SYNC, group.group_id, member_id, now_ms + after.rebalance_timeout_ms)
    return Outcome(records=records, reply=joined(after))


def joined(member: ConsumerMember) -> JoinGroupResponse:
    assert member.classic is not None
    return JoinGroupResponse(
        member_id=member.member_id,
        generation_id=member.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=member.classic.protocols[0][0],
    )


def classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is None:
        member = group.members.get(member_id)
    else:
        member = check_instance(group.static_member(instance_id), member_id, instance_id)
    if member is None or not member.is_classic:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def sync(
    state: ConsumerState,
    group: ConsumerGroup,
    request: SyncGroupRequest,
    version: int,
    image: MetadataImage,
    now_ms: int,
) -> Outcome:
    if version >= PROTOCOL_REQUIRED_VERSION and None in (request.protocol_type, request.protocol_name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    member = classic_member(group, request.member_id, request.group_instance_id)
    assert member.classic is not None
    check_generation(member, request.generation_id)
    protocol, metadata = member.classic.protocols[0]
    if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (None, protocol):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    is_revoking = member.state is MemberState.UNREVOKED_PARTITIONS
    if group.assignment_epoch > member.epoch and not is_revoking:
        request_rejoin(state, group, member, now_ms)
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    state.timers.cancel(Due.SYNC, group.group_id, member.member_id)
    renew_session(state, group, member, now_ms)
    reply = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=embedded.assignment_bytes(member.assigned, metadata, image),
    )
    return Outcome(reply=reply)


def heartbeat(state: ConsumerState, group: ConsumerGroup, request: HeartbeatRequest, now_ms: int) -> Outcome:
    member = classic_member(group, request.member_id, request.group_instance_id)
    check_generation(member, request.generation_id)
    renew_session(state, group, member, now_ms)
    if not must_rejoin(group, member):
        return Outcome(reply=HeartbeatResponse())
    request_rejoin(state, group, member, now_ms)
    return Outcome(reply=HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))


def must_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether there is a new target, or something to revoke, or everything it waited for is free."""
    if member.epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not is_waiting(group, member)


def is_waiting(group: ConsumerGroup, member: ConsumerMember) -> bool:
    return any(
        partition not in member.assigned.get(topic_id, {})
        and group.owner_epoch(topic_id, partition) is not None
        for topic_id, partitions in group.target.get(member.member_id, {}).items()
        for partition in partitions
    )


def check_generation(member: ConsumerMember, generation: int) -> None:
    if generation != member.epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)


def renew_session(state: ConsumerState, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
    assert member.classic is not None
    at_ms = now_ms + member.classic.session_timeout_ms
    state.timers.set(Due.SESSION, group.group_id, member.member_id, at_ms)


def request_rejoin(state: ConsumerState, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
    """Ask the member to rejoin. Its rebalance timeout counts from the first time."""
    if not state.timers.is_set(Due.JOIN, group.group_id, member.member_id):
        at_ms = now_ms + member.rebalance_timeout_ms
        state.timers.set(Due.JOIN, group.group_id, member.member_id, at_ms)


def leave(
    group: ConsumerGroup, request: LeaveGroupRequest, version: int
) -> tuple[list[ConsumerMember], LeaveGroupResponse]:
    """The members that leave, and the response. An administrator may remove members of the consumer
    protocol too."""
    identities = request.members
    if version < BATCHED_LEAVE_VERSION:
        identities = [LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
    left: dict[str, ConsumerMember] = {}
    response = LeaveGroupResponse()
    for identity in identities:
        result = LeaveGroupResponse.MemberResponse(
            member_id=identity.member_id, group_instance_id=identity.group_instance_id
        )
        response.members.append(result)
        try:
            member = find_leaver(group, identity)
            left[member.member_id] = member
        except KafkaError as refused:
            result.error_code = refused.code
    if version < BATCHED_LEAVE_VERSION:
        response = LeaveGroupResponse(error_code=response.members[0].error_code)
    return list(left.values()), response


def find_leaver(group: ConsumerGroup, identity: LeaveGroupRequest.MemberIdentity) -> ConsumerMember:
    if identity.group_instance_id is None:
        member = group.members.get(identity.member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member
    existing = group.static_member(identity.group_instance_id)
    member_id = identity.member_id or (existing.member_id if existing is not None else "")
    return check_instance(existing, member_id, identity.group_instance_id)
