"""Rebalancing of a classic group: members are asked to join; when all have, or time is over, it continues.

In: a group that a member joined, left or changed. Out: responses to waiting requests, deadlines, and a record
when the group became empty. All changes of state happen here, except the leader's assignment.
Does not know: requests.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.groups.basics.deadlines import Deadlines, Timer
from barnabas.groups.basics.member_ids import Rng
from barnabas.groups.basics.outcome import Outcome, Token, Tokens
from barnabas.groups.basics.records import Entry
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.basics.shared_values import SharedValues
from barnabas.groups.classic.group import NO_ENTRIES, ClassicGroup, Due
from barnabas.groups.classic.member import ClassicMember
from barnabas.groups.classic.states import (
    CAN_REBALANCE,
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.log_records.consumer_offsets import GroupMetadataKey, GroupMetadataValue
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse

NULLABLE_PROTOCOL_VERSION = 7  # of JoinGroup: older versions use the empty name instead of null


@dataclass(slots=True)
class ClassicState:
    """All classic groups of a shard, and what decisions on them need."""

    settings: GroupSettings
    rng: Rng
    tokens: Tokens
    groups: dict[str, ClassicGroup] = field(default_factory=dict)
    deadlines: Deadlines[Timer] = field(default_factory=Deadlines)
    shared: SharedValues = field(default_factory=SharedValues)
    # assignments: groups with one member often have equal ones
    assignments: SharedValues = field(default_factory=SharedValues)


# Responses to waiting requests


def respond_to_join(group: ClassicGroup, member: ClassicMember, response: Message, outcome: Outcome) -> None:
    if member.join_token is not None:
        outcome.responses.append((member.join_token, response))
        member.join_token = None
        group.joins_waiting -= 1


def respond_to_sync(member: ClassicMember, response: Message, outcome: Outcome) -> bool:
    if member.sync_token is None:
        return False
    outcome.responses.append((member.sync_token, response))
    member.sync_token = None
    return True


def await_join(
    group: ClassicGroup, member: ClassicMember, token: Token, version: int, outcome: Outcome
) -> None:
    """Let the member's request wait. An earlier JoinGroup of it that still waits gets
    REBALANCE_IN_PROGRESS."""
    respond_to_join(
        group,
        member,
        join_refusal(ErrorCode.REBALANCE_IN_PROGRESS, member.join_version, member.member_id),
        outcome,
    )
    member.join_token, member.join_version = token, version
    group.joins_waiting += 1
    outcome.waiting_token = token


def join_refusal(error: ErrorCode, version: int, member_id: str = "") -> JoinGroupResponse:
    """The response with an error. The protocol is null, or the empty name in older versions."""
    protocol = None if version >= NULLABLE_PROTOCOL_VERSION else ""
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=protocol)


def generation_of(group: ClassicGroup, member_id: str, *, shows_members: bool) -> JoinGroupResponse:
    """The response to JoinGroup: the group's current generation."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        member_id=member_id,
        members=group.members_for_leader() if shows_members else [],
    )


def drop_member(group: ClassicGroup, member: ClassicMember, outcome: Outcome) -> None:
    """Remove a member. Its waiting requests get UNKNOWN_MEMBER_ID, so that it may join anew."""
    respond_to_join(group, member, join_refusal(ErrorCode.UNKNOWN_MEMBER_ID, member.join_version), outcome)
    respond_to_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), outcome)
    group.remove(member.member_id)


# Deadlines


def renew_session(
    state: ClassicState, member: ClassicMember, now_ms: int, timeout_ms: int | None = None
) -> None:
    if timeout_ms is None:
        timeout_ms = member.session_timeout_ms
    state.deadlines.set(member, now_ms + timeout_ms)


def await_joins(state: ClassicState, group: ClassicGroup, due: Due, deadline_ms: int) -> None:
    group.due = due
    state.deadlines.set(group, deadline_ms)


def await_syncs(state: ClassicState, group: ClassicGroup, now_ms: int) -> None:
    group.due = Due.SYNC
    state.deadlines.set(group, now_ms + group.rebalance_timeout_ms)


def cancel_syncs(group: ClassicGroup) -> None:
    group.unsynced = NO_ENTRIES
    if group.due is Due.SYNC:
        group.cancel()


# The phases of a rebalance


def rebalance_or_complete(state: ClassicState, group: ClassicGroup, outcome: Outcome, now_ms: int) -> None:
    """Begin a rebalance after a change, or complete the one in progress if it can."""
    if group.state in CAN_REBALANCE:
        prepare_rebalance(state, group, outcome, now_ms)
    else:
        complete_if_all_joined(state, group, outcome, now_ms)


def prepare_rebalance(state: ClassicState, group: ClassicGroup, outcome: Outcome, now_ms: int) -> None:
    """Ask all members to join: heartbeats and syncs get REBALANCE_IN_PROGRESS."""
    if group.state is COMPLETING_REBALANCE:
        send_assignments(state, group, {}, ErrorCode.REBALANCE_IN_PROGRESS, outcome, now_ms)
    cancel_syncs(group)
    if group.state is EMPTY:  # the first members: more may be about to join
        delay_ms = state.settings.initial_rebalance_delay_ms
        group.initial_delay_ms = delay_ms
        group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        await_joins(state, group, Due.INITIAL_JOIN, now_ms + delay_ms)
        group.transition(PREPARING_REBALANCE, now_ms)
        return
    group.transition(PREPARING_REBALANCE, now_ms)
    if group.have_all_joined:
        complete_join(state, group, outcome, now_ms)
    else:
        await_joins(state, group, Due.JOIN, now_ms + group.rebalance_timeout_ms)


def complete_if_all_joined(state: ClassicState, group: ClassicGroup, outcome: Outcome, now_ms: int) -> None:
    """Complete the join phase if all members have joined. The first one of a group waits for its delay."""
    if group.state is PREPARING_REBALANCE and group.previous_state is not EMPTY and group.have_all_joined:
        complete_join(state, group, outcome, now_ms)


def on_initial_delay_over(state: ClassicState, group: ClassicGroup, outcome: Outcome, now_ms: int) -> None:
    """End the delay of an empty group, or extend it while members keep joining, up to their timeout."""
    if group.state is not PREPARING_REBALANCE:
        return
    if group.new_member_added and group.initial_remaining_ms:
        group.new_member_added = False
        delay_ms = min(state.settings.initial_rebalance_delay_ms, group.initial_remaining_ms)
        group.initial_remaining_ms = max(group.initial_remaining_ms - group.initial_delay_ms, 0)
        group.initial_delay_ms = delay_ms
        await_joins(state, group, Due.INITIAL_JOIN, now_ms + delay_ms)
    else:
        complete_join(state, group, outcome, now_ms)


def complete_join(state: ClassicState, group: ClassicGroup, outcome: Outcome, now_ms: int) -> None:
    """Begin the next generation. Members that did not join are removed, except static ones."""
    if group.state is not PREPARING_REBALANCE:
        return
    group.cancel()
    for member in list(group.members.values()):
        if member.join_token is None and not member.is_static:
            group.remove(member.member_id)
    if group.members and not group.elect_joined_leader():
        # Only static members are left and none joined: their sessions will end, or they will join.
        await_joins(state, group, Due.JOIN, now_ms + group.rebalance_timeout_ms)
        return
    group.next_generation(now_ms)
    group.new_member_added = False
    group.initial_delay_ms = group.initial_remaining_ms = 0
    if group.state is EMPTY:
        outcome.records.append(group_record(group, group.value({})))
        return
    for member in group.members.values():
        shows_members = member.member_id == group.leader
        if member.join_token is not None:
            response = generation_of(group, member.member_id, shows_members=shows_members)
            respond_to_join(group, member, response, outcome)
        renew_session(state, member, now_ms)
        member.is_new = False
        group.await_sync(member.member_id)
    await_syncs(state, group, now_ms)


def send_assignments(
    state: ClassicState,
    group: ClassicGroup,
    assignments: dict[str, bytes],
    error: ErrorCode,
    outcome: Outcome,
    now_ms: int,
) -> None:
    """Set every member's assignment (empty after an error), and send it to the members that wait for it."""
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
        if member.sync_token is not None:
            response = SyncGroupResponse(error_code=error, assignment=member.assignment)
            if error == ErrorCode.NONE:
                response.protocol_type, response.protocol_name = group.protocol_type, group.protocol
            respond_to_sync(member, response, outcome)
            renew_session(state, member, now_ms)


def on_member_expired(state: ClassicState, group: ClassicGroup, outcome: Outcome, now_ms: int) -> None:
    """Continue after a member's session expired."""
    if group.state is STABLE or group.state is COMPLETING_REBALANCE:
        rebalance_or_complete(state, group, outcome, now_ms)
    elif group.state is PREPARING_REBALANCE and group.have_all_joined:
        complete_join(state, group, outcome, now_ms)


def on_sync_timeout(state: ClassicState, group: ClassicGroup, outcome: Outcome, now_ms: int) -> None:
    """Remove members that joined and never synced, and begin a rebalance."""
    if group.state not in (COMPLETING_REBALANCE, STABLE) or not group.unsynced:
        return
    for member_id in list(group.unsynced):
        drop_member(group, group.members[member_id], outcome)
    prepare_rebalance(state, group, outcome, now_ms)


def group_record(group: ClassicGroup, value: GroupMetadataValue | None) -> Entry:
    return Entry(GroupMetadataKey(group=group.group_id), value)
