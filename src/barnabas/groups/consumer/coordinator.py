"""All consumer groups of a shard; implements `GroupKind`.

In: ConsumerGroupHeartbeat and ConsumerGroupDescribe, records, time, metadata. Out: outcomes and responses.
Groups change only in `apply`, so the records of an outcome must be applied before the next decision on the
group.
Does not know: offsets, the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping

from barnabas.groups.assignors.spec import Assignor
from barnabas.groups.basics.kind import SINCE_COMMIT, PartitionCheck, not_a_consumer_group
from barnabas.groups.basics.member_ids import Rng
from barnabas.groups.basics.outcome import Caller, Outcome, Token
from barnabas.groups.basics.records import Entry
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.classic.coordinator import ClassicGroups
from barnabas.groups.consumer import (
    commits,
    describing,
    leaving,
    migration,
    regexes,
    replay,
    validation,
)
from barnabas.groups.consumer.group import ConsumerGroup, ConsumerGroupState
from barnabas.groups.consumer.heartbeat import heartbeat, respond_if_unchanged
from barnabas.groups.consumer.member import (
    JOINING_EPOCH,
    STATIC_LEAVING_EPOCH,
    ConsumerMember,
    MemberState,
)
from barnabas.groups.consumer.mixed import MixedGroups
from barnabas.groups.consumer.state import NO_VERSION, ConsumerState, Due
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps, at_once
from barnabas.metadata.topic_changes import TopicChanges
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.messages.list_groups import ListGroupsResponse

PROTOCOL = "consumer"  # in `group.coordinator.rebalance.protocols`
TIMERS_PER_TURN = 50
MEMBERS_AT_ONCE = 50  # larger groups are assigned in steps
PARTITIONS_AT_ONCE = 1_000


class ConsumerGroups:
    """`groups.basics.kind.GroupKind` describes the methods."""

    __slots__ = ("_is_other_kind", "_mixed", "classic", "state")

    def __init__(
        self,
        settings: GroupSettings,
        rng: Rng,
        classic: ClassicGroups,
        is_other_kind: Callable[[str], bool],
        assignors: Mapping[str, Assignor] | None = None,
    ) -> None:
        """`is_other_kind` says whether a group exists that is neither a consumer nor a classic group."""
        self.state = ConsumerState(settings, rng, assignors)
        self.classic = classic
        self._is_other_kind = is_other_kind
        self._mixed = MixedGroups(self.state, classic)

    # Requests

    def handle(self, request: Message, caller: Caller, image: MetadataImage, now_ms: int) -> Outcome:
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            return respond_if_unchanged(self.state, request, caller, image, now_ms) or at_once(
                self.heartbeat(request, caller, image, now_ms)
            )
        return self._mixed.handle(request, caller, image, now_ms)

    def is_long(self, request: ConsumerGroupHeartbeatRequest, image: MetadataImage) -> bool:
        """Whether the heartbeat computes a new target, or hashes its topics, for a large group."""
        group = self.state.groups.get(request.group_id)
        is_joining = request.member_epoch == JOINING_EPOCH
        if group is None:
            names: Collection[str] = request.subscribed_topic_names or ()
            return is_joining and self._partitions_of(names, image) > PARTITIONS_AT_ONCE
        if not is_joining and group.metadata_is_fresh and group.epoch == group.assignment_epoch:
            return request.subscribed_topic_names is not None and len(group.members) > MEMBERS_AT_ONCE
        if len(group.members) > MEMBERS_AT_ONCE:
            return True
        names = request.subscribed_topic_names or ()
        return self._partitions_of((*group.subscribed_topics(), *names), image) > PARTITIONS_AT_ONCE

    def _partitions_of(self, topics: Collection[str], image: MetadataImage) -> int:
        """The number of partitions of the topics, exact only below PARTITIONS_AT_ONCE topics."""
        if len(topics) > PARTITIONS_AT_ONCE:
            return len(topics)
        by_name = image.topics.by_name
        return sum(len(by_name[name].partitions) for name in topics if name in by_name)

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Steps[Outcome]:
        try:
            return (yield from self._heartbeat(request, caller, image, now_ms))
        except KafkaError as error:
            reply = ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message or None)
            return Outcome(reply=reply)

    def _heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Steps[Outcome]:
        state = self.state
        if state.topics_version == NO_VERSION:
            state.topics_version = image.provenance.offset
        if PROTOCOL not in state.settings.rebalance_protocols:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        validation.check(request, caller.version, state.assignors)
        if self._is_other_kind(request.group_id):
            raise not_a_consumer_group(request.group_id)
        if request.member_epoch < JOINING_EPOCH:
            group = self._existing(request.group_id)
            member = leaving.find_leaver(group, request)
            if request.member_epoch == STATIC_LEAVING_EPOCH:
                return leaving.pause(group, member)
            reply = ConsumerGroupHeartbeatResponse(
                member_id=member.member_id, member_epoch=request.member_epoch
            )
            outcome = self._mixed.remove(group, [member], image, now_ms)
            outcome.reply = reply
            return outcome
        found, records = self._group_for(request, image)
        outcome = yield from heartbeat(state, found, request, caller, (now_ms, image))
        outcome.records[:0] = records
        former = self.classic.get(request.group_id)
        if former is not None:
            migration.finish_upgrade(state, former, outcome, now_ms)
        return outcome

    def _group_for(
        self, request: ConsumerGroupHeartbeatRequest, image: MetadataImage
    ) -> tuple[ConsumerGroup, list[Entry]]:
        """The group, or a new one for a member that joins; and the records that delete a group of another
        kind."""
        group_id = request.group_id
        group = self.state.groups.get(group_id)
        if group is not None:
            return group, []
        joins = request.member_epoch == JOINING_EPOCH
        classic = self.classic.get(group_id)
        if classic is None:
            if not joins:
                message = f"Consumer group {group_id} not found."
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)
            return ConsumerGroup(group_id), []
        if not joins:
            raise not_a_consumer_group(group_id)
        if self.classic.is_empty(group_id):
            return ConsumerGroup(group_id), self.classic.tombstones(group_id)
        migration.check_upgrade(self.state, classic)
        return migration.upgraded(self.state, classic, image)

    def _existing(self, group_id: str) -> ConsumerGroup:
        if self.classic.owns(group_id):
            raise not_a_consumer_group(group_id)
        return self.state.group(group_id)

    def describe(self, group_id: str, image: MetadataImage) -> ConsumerGroupDescribeResponse.DescribedGroup:
        group = self.state.groups.get(group_id)
        if group is None:
            is_other = self.classic.owns(group_id) or self._is_other_kind(group_id)
            return describing.not_found(group_id, is_other)
        return describing.described(group, self.state.default_assignor, image)

    def undo_decision(self, group_id: str) -> bool:
        """Undo after the records of a heartbeat could not be written: check the group's topics again.
        Returns whether that is enough: a group that was being upgraded has already answered its members."""
        group = self.state.groups.get(group_id)
        if group is not None:
            group.metadata_is_fresh = False
        return not self.classic.owns(group_id)

    # Records

    def apply(self, entry: Entry) -> None:
        replay.apply(self.state, entry)

    def loaded(self, now_ms: int) -> None:
        """Nothing to do."""

    def replayed(self, now_ms: int) -> Steps[None]:
        """Start sessions with the broker's default timeout; the first heartbeat applies the group's own."""
        state = self.state
        state.timers.clear()
        timeout_ms = state.settings.consumer_session_timeout_ms
        for group in list(state.groups.values()):
            yield
            for member in group.members.values():
                session_ms = member.classic.session_timeout_ms if member.classic else timeout_ms
                state.timers.set(Due.SESSION, group.group_id, member.member_id, now_ms + session_ms)
                if member.state is MemberState.UNREVOKED_PARTITIONS and not member.is_classic:
                    at_ms = now_ms + member.rebalance_timeout_ms
                    state.timers.set(Due.REBALANCE, group.group_id, member.member_id, at_ms)

    def unload(self) -> list[tuple[Token, Message]]:
        self.state.groups.clear()
        self.state.subscribers.clear()
        self.state.matches.clear()
        self.state.describable.clear()
        self.state.timers.clear()
        return []

    # Time

    def next_deadline_ms(self) -> int | None:
        return self.state.timers.next_ms()

    def on_clock_set(self, by_ms: int) -> None:
        self.state.timers.shift(by_ms)

    def on_timer(self, now_ms: int, image: MetadataImage) -> list[Outcome]:
        """Handle timers that are due. Returns at most one outcome per group: its records must be applied
        first."""
        expired: dict[str, dict[str, ConsumerMember]] = {}
        to_resolve: list[str] = []
        state = self.state
        for _ in range(TIMERS_PER_TURN):
            deadline = state.timers.pop_due(now_ms)
            if deadline is None:
                break
            group = state.groups.get(deadline.group_id)
            if group is None:
                continue
            if deadline.due is Due.REGEX:
                to_resolve.append(deadline.group_id)
            elif member := group.members.get(deadline.member_id):
                expired.setdefault(deadline.group_id, {})[deadline.member_id] = member
        outcomes = []
        for group_id, members in expired.items():
            outcomes.append(self._mixed.remove(state.groups[group_id], list(members.values()), image, now_ms))
        is_searching = False
        for group_id in to_resolve:
            records = None
            if group_id not in expired and not is_searching:
                records = regexes.resolve(state, state.groups[group_id], image, now_ms)
                is_searching = records is None
            if records is None:  # in the next turn
                state.timers.set(Due.REGEX, group_id, regexes.WHOLE_GROUP, now_ms)
            elif records:
                outcomes.append(Outcome(records=records))
        return outcomes

    def metadata_changed(self, image: MetadataImage, changes: TopicChanges, now_ms: int) -> list[Outcome]:
        """Mark groups whose topics changed. They check their topics with their next heartbeat; nothing is
        written now."""
        state = self.state
        if state.topics_version == NO_VERSION or changes.created:
            state.topics_version = image.provenance.offset
        state.matches.update(changes)
        for names in (changes.created, changes.altered, changes.deleted):
            for name in names:
                for group in state.subscribers.of(name):
                    group.metadata_is_fresh = False
        return []

    # Serving offsets and administration

    def get(self, group_id: str) -> ConsumerGroup | None:
        return self.state.groups.get(group_id)

    def owns(self, group_id: str) -> bool:
        return group_id in self.state.groups

    def is_empty(self, group_id: str) -> bool:
        return not self.state.groups[group_id].members

    def group_ids(self) -> list[str]:
        return list(self.state.groups)

    @property
    def group_count(self) -> int:
        return len(self.state.groups)

    def configure(self, settings: GroupSettings) -> None:
        self.state.settings = settings

    def check_commit(
        self, group_id: str, member_id: str, instance_id: str | None, epoch: int, version: int, now_ms: int
    ) -> PartitionCheck | None:
        return commits.check_commit(self.state.groups[group_id], member_id, epoch, version)

    def check_transactional_commit(
        self, group_id: str, member_id: str, instance_id: str | None, epoch: int
    ) -> PartitionCheck | None:
        if epoch == -1 and not member_id and instance_id is None:
            return None
        return commits.check_commit(self.state.groups[group_id], member_id, epoch, None)

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> None:
        commits.check_fetch(self.state.groups[group_id], member_id, epoch)

    def check_offset_delete(self, group_id: str) -> None:
        """Offsets of topics without subscribers may always be deleted."""

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        return self.state.groups[group_id].is_subscribed(topic)

    def check_delete(self, group_id: str) -> None:
        if self.state.groups[group_id].members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def tombstones(self, group_id: str) -> list[Entry]:
        return leaving.tombstones(self.state.groups[group_id])

    def expires_since(self, group_id: str) -> int | None:
        return SINCE_COMMIT

    def counts(self) -> Counter[ConsumerGroupState]:
        """The number of groups in each state."""
        return Counter(group.state for group in self.state.groups.values())

    def listed(self, group_id: str) -> ListGroupsResponse.ListedGroup | None:
        group = self.state.groups.get(group_id)
        return None if group is None else describing.listed(group)
