"""Consumer groups whose members use both protocols: requests of classic members, and removal of members.

In: JoinGroup, SyncGroup, Heartbeat and LeaveGroup to a consumer group; members that leave or are fenced. Out:
outcomes. A group with only classic members left becomes a classic one, if the policy allows.
Does not know: the requests of the consumer protocol.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from barnabas.groups.basics.outcome import Caller, Outcome
from barnabas.groups.classic.coordinator import ClassicGroups
from barnabas.groups.classic.joining import refuse_at_once
from barnabas.groups.classic.rebalance import join_refusal
from barnabas.groups.consumer import classic_members, leaving, migration
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.heartbeat import new_member_id
from barnabas.groups.consumer.member import ConsumerMember
from barnabas.groups.consumer.state import ConsumerState
from barnabas.metadata.image import MetadataImage
from barnabas.protocol import ErrorCode, KafkaError, Message, ProtocolError
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class MixedGroups:
    __slots__ = ("classic", "state")

    def __init__(self, state: ConsumerState, classic: ClassicGroups) -> None:
        self.state = state
        self.classic = classic

    def handle(self, request: Message, caller: Caller, image: MetadataImage, now_ms: int) -> Outcome:
        """Handle requests of members that use the classic protocol within a consumer group."""
        state, clock = self.state, (now_ms, image)
        if isinstance(request, HeartbeatRequest):
            try:
                return classic_members.heartbeat(state, state.group(request.group_id), request, now_ms)
            except KafkaError as refused:
                return Outcome(reply=HeartbeatResponse(error_code=refused.code))
        if isinstance(request, SyncGroupRequest):
            try:
                return classic_members.sync(
                    state, state.group(request.group_id), request, caller.version, image, now_ms
                )
            except KafkaError as refused:
                return Outcome(reply=SyncGroupResponse(error_code=refused.code))
        if isinstance(request, JoinGroupRequest):
            try:
                return self._join(request, caller, clock)
            except (KafkaError, ProtocolError) as refused:
                error = refused.code if isinstance(refused, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
                return Outcome(reply=join_refusal(error, caller.version, ""))
        if isinstance(request, LeaveGroupRequest):
            group = state.group(request.group_id)
            left, reply = classic_members.leave(group, request, caller.version)
            outcome = self.remove(group, left, image, now_ms) if left else Outcome()
            outcome.reply = reply
            return outcome
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"consumer groups do not serve {type(request).__name__}"
        )

    def _join(self, request: JoinGroupRequest, caller: Caller, clock: tuple[int, MetadataImage]) -> Outcome:
        state = self.state
        refusal = refuse_at_once(self.classic.state, request, caller.version)
        if refusal is not None:
            return Outcome(reply=refusal)
        if caller.version == 0:
            request.rebalance_timeout_ms = request.session_timeout_ms
        group = state.group(request.group_id)
        instance_id = request.group_instance_id
        replaced = group.static_member(instance_id) if instance_id is not None else None
        if replaced is None or replaced.is_classic or request.member_id:
            return classic_members.join(state, group, request, caller, clock)
        if not migration.may_downgrade(state, group, [replaced]):
            return classic_members.join(state, group, request, caller, clock)
        return self._join_and_downgrade(group, replaced, request, caller, clock)

    def _join_and_downgrade(
        self,
        group: ConsumerGroup,
        replaced: ConsumerMember,
        request: JoinGroupRequest,
        caller: Caller,
        clock: tuple[int, MetadataImage],
    ) -> Outcome:
        """Downgrade the group, because its last member of the consumer protocol rejoins with the classic
        one."""
        now_ms, image = clock
        member_id = new_member_id(self.state.rng)
        classic_members.check_join(self.state, group, request, replaced.member_id)
        joining = replace(classic_members.with_join(replaced, request, caller), member_id=member_id)
        members = [each for each in group.members.values() if each is not replaced]
        is_stale = (
            group.epoch > group.assignment_epoch
            or joining.topics != replaced.topics
            or not all(migration.has_reconciled(group, each) for each in (*members, replaced))
        )
        members.append(joining)
        outcome = migration.downgrade(
            self.state, self.classic, group, members, image, now_ms, rebalances=is_stale
        )
        outcome.reply = classic_members.joined(replace(joining, epoch=group.epoch))
        return outcome

    def remove(
        self,
        group: ConsumerGroup,
        leaving_members: Collection[ConsumerMember],
        image: MetadataImage,
        now_ms: int,
    ) -> Outcome:
        """Remove members. If only classic ones are left, the group becomes a classic one."""
        state = self.state
        if not migration.may_downgrade(state, group, leaving_members):
            return Outcome(records=leaving.remove(state, group, leaving_members, image))
        ids = {member.member_id for member in leaving_members}
        staying = [each for each in group.members.values() if each.member_id not in ids]
        return migration.downgrade(state, self.classic, group, staying, image, now_ms, rebalances=True)
