"""JoinGroup: how a member joins a classic group, at first and in every rebalance.

In: a request and the group it names. Out: a reply at once, or a token to wait with.
Does not know: how the rebalance continues (see `rebalance`).
"""

from __future__ import annotations

from barnabas.groups.basics.member_ids import new_member_id
from barnabas.groups.basics.outcome import Caller, Outcome
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.member import ClassicMember, protocols_of
from barnabas.groups.classic.rebalance import (
    ClassicState,
    await_join,
    complete_if_all_joined,
    drop_member,
    generation_of,
    group_record,
    join_refusal,
    prepare_rebalance,
    rebalance_or_complete,
    renew_session,
    respond_to_join,
    respond_to_sync,
)
from barnabas.groups.classic.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.sync_group import SyncGroupResponse

KNOWN_MEMBER_VERSION = 4  # from here on a new dynamic member first gets an id, and joins with it
SKIP_ASSIGNMENT_VERSION = 9
PENDING_MEMBERS_MAX = 10_000  # ids given out in one group; beyond that the oldest is dropped


def join(state: ClassicState, request: JoinGroupRequest, caller: Caller, now_ms: int) -> Outcome:
    outcome = Outcome()
    refusal = refuse_at_once(state, request, caller.version)
    if refusal is not None:
        outcome.reply = refusal
        return outcome
    if caller.version == 0:
        request.rebalance_timeout_ms = request.session_timeout_ms
    group = state.groups.get(request.group_id)
    is_new_group = group is None
    if group is None:
        if request.member_id:
            outcome.reply = join_refusal(ErrorCode.UNKNOWN_MEMBER_ID, caller.version, request.member_id)
            return outcome
        group = state.groups[request.group_id] = ClassicGroup(request.group_id, now_ms)
    written_down = group.value({}) if is_new_group else None
    Joining(state, request, caller, group, outcome, now_ms).decide()
    if written_down is not None and not outcome.records:
        outcome.records.append(group_record(group, written_down))
    return outcome


def refuse_at_once(state: ClassicState, request: JoinGroupRequest, version: int) -> Message | None:
    if not request.group_id:
        return join_refusal(ErrorCode.INVALID_GROUP_ID, version, request.member_id)
    settings = state.settings
    if not settings.session_timeout_ms_min <= request.session_timeout_ms <= settings.session_timeout_ms_max:
        return join_refusal(ErrorCode.INVALID_SESSION_TIMEOUT, version, request.member_id)
    return None


class Joining:
    """The decision about one JoinGroup request."""

    __slots__ = ("caller", "group", "now_ms", "outcome", "protocols", "request", "state")

    def __init__(
        self,
        state: ClassicState,
        request: JoinGroupRequest,
        caller: Caller,
        group: ClassicGroup,
        outcome: Outcome,
        now_ms: int,
    ) -> None:
        self.state = state
        self.request = request
        self.caller = caller
        self.group = group
        self.outcome = outcome
        self.now_ms = now_ms
        self.protocols = state.shared.get(protocols_of(request))

    def decide(self) -> None:
        group, request, outcome = self.group, self.request, self.outcome
        member_id = request.member_id
        if not self.has_room():
            member = group.members.get(member_id)
            if member is not None:
                drop_member(group, member, outcome)
            group.remove(member_id)
            # It may have been the last one to wait for.
            complete_if_all_joined(self.state, group, outcome, self.now_ms)
            self.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED)
        elif not group.supports(request.protocol_type, self.protocols):
            self.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        elif not member_id:
            self.new_member()
        elif member_id in group.pending:
            if request.group_instance_id is not None:  # only dynamic members get pending ids
                self.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
            else:
                self.add(member_id)
        else:
            self.known_member()

    def has_room(self) -> bool:
        group, limit = self.group, self.state.settings.group_size_max
        member = group.members.get(self.request.member_id)
        if group.state is EMPTY:
            return True
        if group.state is PREPARING_REBALANCE:
            # Waiting members count: after the limit was lowered, the last ones to rejoin are refused.
            return (member is not None and member.join_token is not None) or group.joins_waiting < limit
        return member is not None or len(group.members) < limit

    def new_member(self) -> None:
        instance_id = self.request.group_instance_id
        prefix = self.caller.client_id if instance_id is None else instance_id
        member_id = new_member_id(prefix, self.state.rng)
        if instance_id is not None:
            known = self.group.static_members.get(instance_id)
            if known is None:
                self.add(member_id)
            else:
                self.replace(known, member_id)
        elif self.caller.version >= KNOWN_MEMBER_VERSION:
            self.send_new_id(member_id)
        else:
            self.add(member_id)

    def send_new_id(self, member_id: str) -> None:
        group = self.group
        if len(group.pending) >= PENDING_MEMBERS_MAX:
            group.remove_pending(next(iter(group.pending)))
        pending = group.add_pending(member_id)
        self.state.deadlines.set(pending, self.now_ms + self.request.session_timeout_ms)
        self.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id)

    def add(self, member_id: str) -> None:
        group, request, now_ms = self.group, self.request, self.now_ms
        same = self.state.shared.get
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            (same(self.caller.client_id), same(self.caller.client_host)),
            same(request.rebalance_timeout_ms),
            same(request.session_timeout_ms),
            self.protocols,
        )
        member.is_new = True
        if group.state is PREPARING_REBALANCE and group.previous_state is EMPTY:
            group.new_member_added = True
        group.add(member, same(request.protocol_type))
        self.wait(member)
        # It cannot send heartbeats yet, and may disconnect unnoticed.
        renew_session(self.state, member, now_ms, self.state.settings.new_member_join_timeout_ms)
        rebalance_or_complete(self.state, group, self.outcome, now_ms)

    def known_member(self) -> None:
        group, request, outcome = self.group, self.request, self.outcome
        try:
            member = group.check_member(request.member_id, request.group_instance_id)
        except KafkaError as error:
            self.refuse(error.code, request.member_id)
            return
        is_leader = group.leader == member.member_id
        is_same = member.protocols == self.protocols
        if group.state is COMPLETING_REBALANCE and is_same:  # it missed the response
            outcome.reply = generation_of(group, member.member_id, shows_members=is_leader)
        elif group.state is STABLE and is_same and not is_leader:
            outcome.reply = generation_of(group, member.member_id, shows_members=False)
        elif group.state is EMPTY:
            self.refuse(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id)
        else:  # a leader that rejoins wants a rebalance: it may have seen topics change
            self.update(member)
            rebalance_or_complete(self.state, group, outcome, self.now_ms)

    def replace(self, old_id: str, new_id: str) -> None:
        """Replace a static member that rejoins without its member id: the old id is fenced, the assignment
        is kept."""
        group, state, outcome, now_ms = self.group, self.state, self.outcome, self.now_ms
        leader_before = group.leader
        old = group.members[old_id]
        fenced = ErrorCode.FENCED_INSTANCE_ID
        respond_to_join(group, old, join_refusal(fenced, old.join_version, old_id), outcome)
        respond_to_sync(old, SyncGroupResponse(error_code=fenced), outcome)
        member = group.replace_static(old_id, new_id)
        if old_id in group.unsynced:
            group.has_synced(old_id)
            group.await_sync(new_id)
        renew_session(state, member, now_ms)
        self.update(member)
        if group.state is STABLE:
            if group.select_protocol() == group.protocol:
                self.keep_generation(member, leader_before)
            else:
                rebalance_or_complete(state, group, outcome, now_ms)
        elif group.state is COMPLETING_REBALANCE:
            prepare_rebalance(state, group, outcome, now_ms)  # the leader may have received the old id
        else:
            complete_if_all_joined(state, group, outcome, now_ms)

    def keep_generation(self, member: ClassicMember, leader_before: str | None) -> None:
        """Keep the generation, and write the record with the new id."""
        group, outcome = self.group, self.outcome
        assignments = {other.member_id: other.assignment for other in group.members.values()}
        outcome.records.append(group_record(group, group.value(assignments)))
        leads = group.leader == member.member_id
        if self.caller.version >= SKIP_ASSIGNMENT_VERSION:
            response = generation_of(group, member.member_id, shows_members=leads)
            response.skip_assignment = leads
        else:  # the old leader id keeps it from assigning again
            response = generation_of(group, member.member_id, shows_members=False)
            response.leader = leader_before or ""
        respond_to_join(group, member, response, outcome)

    def update(self, member: ClassicMember) -> None:
        member.rebalance_timeout_ms = self.request.rebalance_timeout_ms
        member.session_timeout_ms = self.request.session_timeout_ms
        self.group.change_protocols(member, self.protocols)
        self.wait(member)

    def wait(self, member: ClassicMember) -> None:
        await_join(self.group, member, self.state.tokens.next(), self.caller.version, self.outcome)

    def refuse(self, error: ErrorCode, member_id: str = "") -> None:
        self.outcome.reply = join_refusal(error, self.caller.version, member_id)
