"""All classic groups of a shard; implements `GroupKind`.

In: the requests of the classic protocol, DescribeGroups, records, time. Out: outcomes and responses.
Groups change when requests are decided. Records are applied only on replay, and to delete a group.
Does not know: offsets, other kinds of groups.
"""

from __future__ import annotations

from collections import Counter
from operator import attrgetter

from barnabas.groups.basics.deadlines import Deadlines, Timer
from barnabas.groups.basics.kind import KEEP_ALL, SINCE_COMMIT, PartitionCheck
from barnabas.groups.basics.member_ids import Rng
from barnabas.groups.basics.outcome import Caller, Outcome, Token, Tokens
from barnabas.groups.basics.records import Entry
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.classic.group import NO_ENTRIES, ClassicGroup, Due, PendingMember
from barnabas.groups.classic.joining import join
from barnabas.groups.classic.member import ClassicMember
from barnabas.groups.classic.membership import heartbeat, leave, sync
from barnabas.groups.classic.rebalance import (
    ClassicState,
    complete_join,
    drop_member,
    join_refusal,
    on_initial_delay_over,
    on_member_expired,
    on_sync_timeout,
    prepare_rebalance,
    renew_session,
)
from barnabas.groups.classic.states import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    ClassicGroupState,
)
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps
from barnabas.metadata.topic_changes import TopicChanges
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.consumer_offsets import GroupMetadataKey, GroupMetadataValue
from barnabas.protocol.messages.describe_groups import DescribeGroupsResponse
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.list_groups import ListGroupsResponse
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

GROUP_TYPE = "classic"
TIMERS_PER_TURN = 50  # each may begin a rebalance; together about a millisecond

DescribedGroup = DescribeGroupsResponse.DescribedGroup


class ClassicGroups:
    """`groups.basics.kind.GroupKind` describes the methods."""

    __slots__ = ("_is_loaded", "_too_large", "state")

    def __init__(self, settings: GroupSettings, rng: Rng, tokens: Tokens) -> None:
        self.state = ClassicState(settings, rng, tokens)
        self._is_loaded = False
        self._too_large: list[ClassicGroup] = []  # found at load, after the size limit was lowered

    # Requests

    def handle(self, request: Message, caller: Caller, image: MetadataImage, now_ms: int) -> Outcome:
        if isinstance(request, HeartbeatRequest):
            return Outcome(reply=heartbeat(self.state, request, now_ms))
        if isinstance(request, JoinGroupRequest):
            return join(self.state, request, caller, now_ms)
        if isinstance(request, SyncGroupRequest):
            return sync(self.state, request, caller, now_ms)
        if isinstance(request, LeaveGroupRequest):
            return leave(self.state, request, caller, now_ms)
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"classic groups do not serve {type(request).__name__}"
        )

    # Records

    def apply(self, entry: Entry) -> None:
        key, value = entry
        assert isinstance(key, GroupMetadataKey)
        groups = self.state.groups
        if value is None:
            deleted = groups.pop(key.group, None)
            if deleted is not None:
                self._mark_dead(deleted)
        elif isinstance(value, GroupMetadataValue) and not (self._is_loaded and key.group in groups):
            groups[key.group] = ClassicGroup.restored(key.group, value, self.state.shared)

    def create_simple(self, group_id: str, now_ms: int) -> None:
        """Create a group that only holds offsets. It has no record of its own."""
        self.state.groups[group_id] = ClassicGroup(group_id, now_ms)

    def remove_simple(self, group_id: str) -> None:
        """Remove a group that only held offsets, because records of another kind of group use its id."""
        group = self.state.groups.get(group_id)
        if group is not None and group.is_simple:
            del self.state.groups[group_id]

    def adopt(self, group: ClassicGroup, outcome: Outcome, now_ms: int, *, rebalances: bool) -> None:
        """Adopt a group that was of another kind until now. Its members' sessions begin anew.
        Its record (`group.value`) and the tombstones of its former kind belong into the same outcome."""
        self.state.groups[group.group_id] = group
        for member in group.members.values():
            renew_session(self.state, member, now_ms)
        if rebalances:
            prepare_rebalance(self.state, group, outcome, now_ms)

    def replayed(self, now_ms: int) -> Steps[None]:
        state = self.state
        state.deadlines = Deadlines()
        self._too_large = []
        for group in list(state.groups.values()):
            for member in group.members.values():
                member.queued_ms = None
                renew_session(state, member, now_ms)
            if len(group.members) > state.settings.group_size_max:
                self._too_large.append(group)
            yield

    def loaded(self, now_ms: int) -> None:
        self._is_loaded = True
        for group in self._too_large:
            # no request waits yet, so there are no responses and no records
            prepare_rebalance(self.state, group, Outcome(), now_ms)
        self._too_large = []

    def unload(self) -> list[tuple[Token, Message]]:
        outcome = Outcome()
        error = ErrorCode.NOT_COORDINATOR
        for group in self.state.groups.values():
            for member in group.members.values():
                if member.join_token is not None:
                    response = join_refusal(error, member.join_version, member.member_id)
                    outcome.responses.append((member.join_token, response))
                if member.sync_token is not None:
                    outcome.responses.append((member.sync_token, SyncGroupResponse(error_code=error)))
        self.state.groups.clear()
        self.state.deadlines = Deadlines()
        return outcome.responses

    # Time

    def next_deadline_ms(self) -> int | None:
        return self.state.deadlines.next_ms()

    def on_clock_set(self, by_ms: int) -> None:
        self.state.deadlines.shift(by_ms)

    def on_timer(self, now_ms: int, image: MetadataImage) -> list[Outcome]:
        """Handle timers that are due, a bounded number per call: after a pause there may be many."""
        outcomes = []
        for _ in range(TIMERS_PER_TURN):
            timer = self.state.deadlines.pop_due(now_ms)
            if timer is None:
                break
            outcome = Outcome()
            self._handle_timer(timer, outcome, now_ms)
            if not outcome.is_empty:
                outcomes.append(outcome)
        return outcomes

    def _handle_timer(self, timer: Timer, outcome: Outcome, now_ms: int) -> None:
        if isinstance(timer, ClassicMember):
            group = self.state.groups.get(timer.group_id)
            if group is not None and not timer.is_alive_by_waiting:
                drop_member(group, timer, outcome)
                on_member_expired(self.state, group, outcome, now_ms)
        elif isinstance(timer, PendingMember):
            group = timer.group
            group.remove(timer.member_id)
            if group.state is PREPARING_REBALANCE and group.have_all_joined:
                complete_join(self.state, group, outcome, now_ms)
        elif isinstance(timer, ClassicGroup):
            if timer.due is Due.INITIAL_JOIN:
                on_initial_delay_over(self.state, timer, outcome, now_ms)
            elif timer.due is Due.JOIN:
                complete_join(self.state, timer, outcome, now_ms)
            else:
                on_sync_timeout(self.state, timer, outcome, now_ms)

    def metadata_changed(self, image: MetadataImage, changes: TopicChanges, now_ms: int) -> list[Outcome]:
        return []  # in a classic group the leader watches topics itself

    # Serving offsets and administration

    def get(self, group_id: str) -> ClassicGroup | None:
        return self.state.groups.get(group_id)

    def owns(self, group_id: str) -> bool:
        return group_id in self.state.groups

    def is_empty(self, group_id: str) -> bool:
        group = self.state.groups[group_id]
        return group.state is EMPTY and not group.pending

    def check_commit(
        self, group_id: str, member_id: str, instance_id: str | None, epoch: int, version: int, now_ms: int
    ) -> PartitionCheck | None:
        group = self.state.groups[group_id]
        if epoch < 0 and group.state is EMPTY:
            return None
        if epoch < 0 and not member_id and instance_id is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        member = group.check_member(member_id, instance_id)
        if epoch != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if group.state is COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        renew_session(self.state, member, now_ms)
        return None

    def check_transactional_commit(
        self, group_id: str, member_id: str, instance_id: str | None, epoch: int
    ) -> PartitionCheck | None:
        group = self.state.groups[group_id]
        if epoch < 0 and (group.state is EMPTY or (not member_id and instance_id is None)):
            return None
        group.check_member(member_id, instance_id)
        if epoch != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return None

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """Anybody may read the offsets of a classic group."""

    def check_offset_delete(self, group_id: str) -> None:
        group = self.state.groups[group_id]
        if group.state is not EMPTY and not group.is_consumer_type:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        return self.state.groups[group_id].is_subscribed(topic)

    def check_delete(self, group_id: str) -> None:
        if self.state.groups[group_id].state is not EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def tombstones(self, group_id: str) -> list[Entry]:
        return [Entry(GroupMetadataKey(group=group_id), None)]

    def expires_since(self, group_id: str) -> int | None:
        group = self.state.groups[group_id]
        if group.protocol_type is None:
            return SINCE_COMMIT
        if group.state is EMPTY:
            return group.state_since_ms  # -1, as in old records, is SINCE_COMMIT
        if group.is_consumer_type and group.state is STABLE and group.subscribed is not None:
            return SINCE_COMMIT
        return KEEP_ALL

    def group_ids(self) -> list[str]:
        return list(self.state.groups)

    @property
    def group_count(self) -> int:
        return len(self.state.groups)

    def configure(self, settings: GroupSettings) -> None:
        self.state.settings = settings

    def listed(self, group_id: str) -> ListGroupsResponse.ListedGroup | None:
        group = self.state.groups.get(group_id)
        if group is None:
            return None
        return ListGroupsResponse.ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=GROUP_TYPE,
        )

    def counts(self) -> Counter[ClassicGroupState]:
        """The number of groups in each state."""
        return Counter(map(attrgetter("state"), self.state.groups.values()))

    def describe(self, group_id: str) -> DescribedGroup | None:
        group = self.state.groups.get(group_id)
        if group is None:
            return None
        is_stable = group.state is STABLE
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=(group.protocol or "") if is_stable else "",
            members=[
                DescribedGroup.DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=member.metadata(group.protocol) if is_stable else b"",
                    member_assignment=member.assignment,
                )
                for member in group.members.values()
            ],
        )

    def _mark_dead(self, group: ClassicGroup) -> None:
        """Cancel all timers of a deleted group: they may still be queued."""
        for timer in (group, *group.pending.values(), *group.members.values()):
            timer.cancel()
        group.pending = NO_ENTRIES
        group.state = DEAD
