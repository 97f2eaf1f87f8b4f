"""SyncGroup, Heartbeat and LeaveGroup: the requests of members that have joined a classic group.

In: requests and the group that each names. Out: responses, and a record of the leader's assignment.
Does not know: how a rebalance continues (see `rebalance`).
"""

from __future__ import annotations

from barnabas.groups.basics.outcome import Caller, Outcome
from barnabas.groups.classic.group import ClassicGroup, Due
from barnabas.groups.classic.rebalance import (
    ClassicState,
    complete_if_all_joined,
    drop_member,
    group_record,
    rebalance_or_complete,
    renew_session,
    respond_to_sync,
    send_assignments,
)
from barnabas.groups.classic.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_REQUIRED_VERSION = 5  # of SyncGroup
BATCHED_LEAVE_VERSION = 3
BYTES_PER_MEMBER = 64  # numbers and lengths of a member in a record, beside its texts

MemberResponse = LeaveGroupResponse.MemberResponse


def heartbeat(state: ClassicState, request: HeartbeatRequest, now_ms: int) -> HeartbeatResponse:
    group = state.groups.get(request.group_id)
    if group is None:
        error = ErrorCode.UNKNOWN_MEMBER_ID if request.group_id else ErrorCode.INVALID_GROUP_ID
        return HeartbeatResponse(error_code=error)
    try:
        member = group.check_member(request.member_id, request.group_instance_id)
    except KafkaError as refused:
        return HeartbeatResponse(error_code=refused.code)
    if request.generation_id != group.generation:
        return HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION)
    if group.state is EMPTY:
        return HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    renew_session(state, member, now_ms)
    if group.state is PREPARING_REBALANCE:
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return HeartbeatResponse()


def sync(state: ClassicState, request: SyncGroupRequest, caller: Caller, now_ms: int) -> Outcome:
    outcome = Outcome()
    group = state.groups.get(request.group_id)
    try:
        check_sync(group, request, caller)
    except KafkaError as refused:
        outcome.reply = SyncGroupResponse(error_code=refused.code)
        return outcome
    assert group is not None
    member = group.members[request.member_id]
    if group.state is PREPARING_REBALANCE:
        outcome.reply = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        return outcome
    has_synced(group, member.member_id)
    if group.state is STABLE:
        outcome.reply = SyncGroupResponse(
            protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
        )
        return outcome
    respond_to_sync(member, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), outcome)
    member.sync_token = outcome.waiting_token = state.tokens.next()
    if member.member_id == group.leader:
        assign(state, group, request, outcome, now_ms)
    return outcome


def check_sync(group: ClassicGroup | None, request: SyncGroupRequest, caller: Caller) -> None:
    if caller.version >= PROTOCOL_REQUIRED_VERSION and None in (request.protocol_type, request.protocol_name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    if group is None or group.state is EMPTY:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if differs(request.protocol_type, group.protocol_type) or differs(request.protocol_name, group.protocol):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def differs(asked: str | None, known: str | None) -> bool:
    return asked is not None and known is not None and asked != known


def has_synced(group: ClassicGroup, member_id: str) -> None:
    group.has_synced(member_id)
    if not group.unsynced and group.due is Due.SYNC:
        group.cancel()


def assign(
    state: ClassicState, group: ClassicGroup, request: SyncGroupRequest, outcome: Outcome, now_ms: int
) -> None:
    """Record the leader's assignment, and send every waiting member its part."""
    same = state.assignments.get
    given = {part.member_id: same(bytes(part.assignment)) for part in request.assignments}
    assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
    if record_size(group, assignments) > state.settings.record_bytes_max:
        # The log would refuse the record, as in Kafka: every member gets an error and may retry.
        send_assignments(state, group, {}, ErrorCode.UNKNOWN_SERVER_ERROR, outcome, now_ms)
        rebalance_or_complete(state, group, outcome, now_ms)
        return
    outcome.records.append(group_record(group, group.value(assignments)))
    send_assignments(state, group, assignments, ErrorCode.NONE, outcome, now_ms)
    group.transition(STABLE, now_ms)


def record_size(group: ClassicGroup, assignments: dict[str, bytes]) -> int:
    """An upper estimate of the size of the group's record."""
    return sum(
        BYTES_PER_MEMBER
        + len(member.metadata(group.protocol))
        + len(assignments[member.member_id])
        + 3 * (len(member.member_id) + len(member.client_id) + len(member.client_host))
        + 3 * len(member.instance_id or "")
        for member in group.members.values()
    )


def leave(state: ClassicState, request: LeaveGroupRequest, caller: Caller, now_ms: int) -> Outcome:
    """Remove members that leave, or that an administrator removes by instance id."""
    outcome = Outcome()
    identities = request.members
    if caller.version < BATCHED_LEAVE_VERSION:
        identities = [LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
    if not request.group_id:
        outcome.reply = LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        return outcome
    group = state.groups.get(request.group_id)
    errors = [leave_one(group, identity, outcome) for identity in identities]
    outcome.reply = leave_response(identities, errors, caller.version)
    if group is not None and ErrorCode.NONE in errors:
        if group.state is STABLE or group.state is COMPLETING_REBALANCE:
            rebalance_or_complete(state, group, outcome, now_ms)
        elif group.state is PREPARING_REBALANCE:
            complete_if_all_joined(state, group, outcome, now_ms)
    return outcome


def leave_one(
    group: ClassicGroup | None, identity: LeaveGroupRequest.MemberIdentity, outcome: Outcome
) -> ErrorCode:
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if member_id in group.pending:
        group.remove(member_id)
        return ErrorCode.NONE
    if not member_id and instance_id is not None:
        member_id = group.static_members.get(instance_id, "")
    try:
        member = group.check_member(member_id, instance_id)
    except KafkaError as refused:
        return refused.code
    drop_member(group, member, outcome)
    return ErrorCode.NONE


def leave_response(
    identities: list[LeaveGroupRequest.MemberIdentity], errors: list[ErrorCode], version: int
) -> LeaveGroupResponse:
    if version < BATCHED_LEAVE_VERSION:
        return LeaveGroupResponse(error_code=errors[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error
            )
            for identity, error in zip(identities, errors, strict=True)
        ]
    )
