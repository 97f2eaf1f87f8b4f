"""All streams groups of a shard; implements `GroupKind`.

In: StreamsGroupHeartbeat and StreamsGroupDescribe, records, time, metadata. Out: outcomes and responses.
Groups change only in `apply`, so the records of an outcome must be applied before the next decision on the
group.
Does not know: offsets, the log, how missing internal topics are created.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from barnabas.groups.basics.kind import SINCE_COMMIT, PartitionCheck
from barnabas.groups.basics.outcome import Caller, Outcome, Token
from barnabas.groups.basics.records import Entry
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.classic.coordinator import ClassicGroups
from barnabas.groups.streams import commits, describing, leaving, replay, target, validation
from barnabas.groups.streams.configuring import InternalTopic
from barnabas.groups.streams.group import StreamsGroup, StreamsGroupState
from barnabas.groups.streams.heartbeat import Heartbeat, may_assign
from barnabas.groups.streams.joining import unknown_member
from barnabas.groups.streams.member import JOINING_EPOCH, MemberState
from barnabas.groups.streams.state import Due, StreamsState
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps, at_once
from barnabas.metadata.topic_changes import TopicChanges
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.list_groups import ListGroupsResponse
from barnabas.protocol.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from barnabas.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

TIMERS_PER_TURN = 50
MEMBERS_AT_ONCE = 50  # larger groups are assigned in steps
TASKS_AT_ONCE = 500
SUBTOPOLOGIES_AT_ONCE = 100
NO_TOPICS: Mapping[str, InternalTopic] = {}


class StreamsGroups:
    """`groups.basics.kind.GroupKind` describes the methods."""

    __slots__ = ("_classic", "_is_other", "state")

    def __init__(
        self, settings: GroupSettings, classic: ClassicGroups, is_other: Callable[[str], bool]
    ) -> None:
        """`is_other` tells whether a group exists and is of another kind."""
        self.state = StreamsState(settings)
        self._classic = classic
        self._is_other = is_other

    # Requests

    def handle(self, request: Message, caller: Caller, image: MetadataImage, now_ms: int) -> Outcome:
        assert isinstance(request, StreamsGroupHeartbeatRequest)
        return at_once(self.heartbeat(request, caller, image, now_ms))

    def is_long(self, request: StreamsGroupHeartbeatRequest, image: MetadataImage) -> bool:
        """Whether the heartbeat may compute a new target for a large group."""
        group = self.state.groups.get(request.group_id)
        if group is None:
            sent = request.topology.subtopologies if request.topology is not None else ()
            if len(sent) > SUBTOPOLOGIES_AT_ONCE:
                return True
            return self._has_many_tasks((name for each in sent for name in each.source_topics), image)
        has_target = group.metadata_is_fresh and group.epoch == group.assignment_epoch
        if request.member_epoch > JOINING_EPOCH and has_target:
            return False
        if len(group.members) > MEMBERS_AT_ONCE:
            return True
        configured, topology = group.configured, group.topology
        if configured is not None:
            return configured.task_count > TASKS_AT_ONCE
        return topology is not None and (
            len(topology.subtopologies) > SUBTOPOLOGIES_AT_ONCE
            or self._has_many_tasks(topology.sources, image)
        )

    def _has_many_tasks(self, sources: Iterable[str], image: MetadataImage) -> bool:
        by_name = image.topics.by_name
        return sum(len(by_name[name].partitions) for name in sources if name in by_name) > TASKS_AT_ONCE

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Steps[Outcome]:
        try:
            validation.check(request)
            if request.member_epoch < JOINING_EPOCH:
                return self._leave(request)
            return (yield from self._heartbeat(request, caller, image, now_ms))
        except KafkaError as error:
            is_unexpected = error.code == ErrorCode.UNKNOWN_SERVER_ERROR  # Apache Kafka does not say why
            message = None if is_unexpected else error.message or None
            return Outcome(reply=StreamsGroupHeartbeatResponse(error_code=error.code, error_message=message))

    def _heartbeat(
        self, request: StreamsGroupHeartbeatRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Steps[Outcome]:
        group_id = request.group_id
        group = self.state.groups.get(group_id)
        records: list[Entry] = []
        is_new = False
        if group is None:
            group, records, is_new = self._group_for(request)
        heartbeat = Heartbeat(self.state, group, request, caller, image, now_ms, is_new, records)
        return (yield from heartbeat.decide())

    def _group_for(self, request: StreamsGroupHeartbeatRequest) -> tuple[StreamsGroup, list[Entry], bool]:
        """A new group for a member that joins, the records that delete an empty classic group of that name,
        and whether no group had the name."""
        group_id = request.group_id
        is_other = self._is_other(group_id)
        if request.member_epoch != JOINING_EPOCH and not is_other:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
        if not is_other:
            return StreamsGroup(group_id), [], True
        is_classic = self._classic.owns(group_id)
        if request.member_epoch == JOINING_EPOCH and is_classic and self._classic.is_empty(group_id):
            return StreamsGroup(group_id), self._classic.tombstones(group_id), False
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")

    def _leave(self, request: StreamsGroupHeartbeatRequest) -> Outcome:
        group = self.state.groups.get(request.group_id)
        if group is None:
            is_other = self._is_other(request.group_id)
            problem = "is not a streams group" if is_other else "not found"
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} {problem}.")
        if request.shutdown_application and group.shutdown_member_id is None:
            group.shutdown_member_id = request.member_id
        if request.member_id not in group.members:
            raise unknown_member(group, request.member_id)
        reply = StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        return Outcome(records=leaving.remove(self.state, group, [request.member_id]), reply=reply)

    def describe_in_steps(
        self, request: StreamsGroupDescribeRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Steps[Outcome]:
        response = StreamsGroupDescribeResponse()
        for group_id in request.group_ids:
            group = self.state.groups.get(group_id)
            if group is None:
                response.groups.append(describing.not_found(group_id, self._is_other(group_id)))
            else:
                response.groups.append(describing.described(group))
            yield
        return Outcome(reply=response)

    def missing_topics(self, group_id: str) -> Mapping[str, InternalTopic]:
        """The internal topics that the last heartbeat of a group found missing."""
        return self.state.missing_topics.get(group_id, NO_TOPICS)

    def undo_decision(self, group_id: str) -> bool:
        """Undo after the records of a heartbeat could not be written: check the group's topics again.
        Returns whether that is enough."""
        group = self.state.groups.get(group_id)
        if group is not None:
            group.metadata_is_fresh = False
            group.configured = None
        return True

    # Records

    def apply(self, entry: Entry) -> None:
        replay.apply(self.state, entry)

    def loaded(self, now_ms: int) -> None:
        """Nothing to do."""

    def replayed(self, now_ms: int) -> Steps[None]:
        """Start sessions with the broker's default timeout; the first heartbeat applies the group's own."""
        state = self.state
        state.timers.clear()
        session_ms = state.settings.streams_session_timeout_ms
        for group in list(state.groups.values()):
            yield
            for member in group.members.values():
                state.timers.set(Due.SESSION, group.group_id, member.member_id, now_ms + session_ms)
                if member.state is MemberState.UNREVOKED_TASKS:
                    at_ms = now_ms + member.rebalance_timeout_ms
                    state.timers.set(Due.REBALANCE, group.group_id, member.member_id, at_ms)

    def unload(self) -> list[tuple[Token, Message]]:
        self.state.groups.clear()
        self.state.subscribers.clear()
        self.state.missing_topics.clear()
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
        state = self.state
        expired: dict[str, dict[str, None]] = {}
        to_assign: list[str] = []
        for _ in range(TIMERS_PER_TURN):
            deadline = state.timers.pop_due(now_ms)
            if deadline is None:
                break
            group = state.groups.get(deadline.group_id)
            if group is None:
                continue
            if deadline.due is Due.FIRST_ASSIGNMENT:
                to_assign.append(deadline.group_id)
            elif deadline.member_id in group.members:
                expired.setdefault(deadline.group_id, {})[deadline.member_id] = None
        outcomes = [
            Outcome(records=leaving.remove(state, state.groups[group_id], members))
            for group_id, members in expired.items()
        ]
        for group_id in to_assign:
            if group_id not in expired:
                outcomes += self._assign_first(state.groups[group_id], image, now_ms)
        return outcomes

    def _assign_first(self, group: StreamsGroup, image: MetadataImage, now_ms: int) -> list[Outcome]:
        """Compute the assignment that waited for more members. What is not ready gets it by a heartbeat."""
        configured = group.configured
        if not group.members or group.epoch <= group.assignment_epoch or configured is None:
            return []
        interval_ms = self.state.values(group.group_id, image).assignment_interval_ms
        if not may_assign(group, interval_ms, now_ms):
            return []
        configs = group.assignment_configs
        steps = target.compute(group, group.epoch, None, configured, configs, now_ms)
        return [Outcome(records=at_once(steps).records)]

    def metadata_changed(self, image: MetadataImage, changes: TopicChanges, now_ms: int) -> list[Outcome]:
        """Mark groups whose topics changed. They check their topics with their next heartbeat; nothing is
        written now."""
        for names in (changes.created, changes.altered, changes.deleted):
            for name in names:
                for group in self.state.subscribers.of(name):
                    group.metadata_is_fresh = False
        return []

    # Serving offsets and administration

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
        self.state.configure(settings)

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
        """Offsets of topics that the topology does not read may always be deleted."""

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        return self.state.groups[group_id].is_subscribed(topic)

    def check_delete(self, group_id: str) -> None:
        if self.state.groups[group_id].members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def tombstones(self, group_id: str) -> list[Entry]:
        return leaving.tombstones(self.state.groups[group_id])

    def expires_since(self, group_id: str) -> int | None:
        return SINCE_COMMIT

    def counts(self) -> Counter[StreamsGroupState]:
        """The number of groups in each state."""
        return Counter(group.state for group in self.state.groups.values())

    def listed(self, group_id: str) -> ListGroupsResponse.ListedGroup | None:
        group = self.state.groups.get(group_id)
        return None if group is None else describing.listed(group)
