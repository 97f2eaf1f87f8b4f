"""All share groups of a shard; implements `GroupKind`.

In: ShareGroupHeartbeat and ShareGroupDescribe, requests about their offsets, records, time, metadata,
responses of share coordinators. Out: outcomes and responses. Groups change only in `apply`, so the records of
an outcome must be applied before the next decision on the group.
Does not know: committed offsets, records in flight, the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

from barnabas.groups.basics.kind import KEEP_ALL, PartitionCheck, not_a_consumer_group
from barnabas.groups.basics.outcome import Caller, Outcome, StateCall, Token, Tokens
from barnabas.groups.basics.records import Entry
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.share import describing, entries, initialization, leaving, replay, validation
from barnabas.groups.share.administration import (
    Administration,
    Altering,
    DeletingGroups,
    DeletingOffsets,
    Initializing,
    Work,
    refusals,
)
from barnabas.groups.share.calls import StateCalls
from barnabas.groups.share.deleted_topics import DeletedTopics
from barnabas.groups.share.group import ShareGroup, ShareGroupState
from barnabas.groups.share.heartbeat import heartbeat, respond_if_unchanged
from barnabas.groups.share.member import JOINING_EPOCH, LEAVING_EPOCH
from barnabas.groups.share.state import Due, ShareState
from barnabas.groups.share.state_partitions import NO_STATE, Partitions, partitions_of
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps, at_once
from barnabas.metadata.topic_changes import TopicChanges
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.list_groups import ListGroupsResponse
from barnabas.protocol.messages.share_group_describe import ShareGroupDescribeResponse
from barnabas.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

TIMERS_PER_TURN = 50
MEMBERS_AT_ONCE = 50  # larger groups are assigned in steps
PARTITIONS_AT_ONCE = 1_000


class ShareGroups:
    """`groups.basics.kind.GroupKind` describes the methods."""

    __slots__ = ("_calls", "_deleted", "_is_other_kind", "administration", "state")

    def __init__(self, settings: GroupSettings, tokens: Tokens, is_other_kind: Callable[[str], bool]) -> None:
        """`is_other_kind` says whether a group exists that is no share group."""
        self.state = ShareState(settings)
        self._is_other_kind = is_other_kind
        self._calls: StateCalls[Work] = StateCalls()
        self._deleted = DeletedTopics(self.state)
        self.administration = Administration(self.state, self._calls, tokens)

    # Requests

    def handle(self, request: Message, caller: Caller, image: MetadataImage, now_ms: int) -> Outcome:
        if isinstance(request, ShareGroupHeartbeatRequest):
            return respond_if_unchanged(self.state, request, caller, image, now_ms) or at_once(
                self.heartbeat(request, caller, image, now_ms)
            )
        if isinstance(request, AlterShareGroupOffsetsRequest):
            return self._alter_offsets(request, image, now_ms)
        assert isinstance(request, DeleteShareGroupOffsetsRequest)
        return self._delete_offsets(request, image)

    def is_long(self, request: ShareGroupHeartbeatRequest, image: MetadataImage) -> bool:
        """Whether the heartbeat looks at all members of a large group, or at many partitions."""
        group = self.state.groups.get(request.group_id)
        names: Collection[str] = request.subscribed_topic_names or ()
        if group is not None:
            if request.member_epoch != JOINING_EPOCH and group.is_settled and group.metadata_is_fresh:
                return bool(names) and len(group.members) > MEMBERS_AT_ONCE
            if len(group.members) > MEMBERS_AT_ONCE:
                return True
            names = (*group.topic_counts, *names)
        if len(names) > PARTITIONS_AT_ONCE:
            return True
        by_name = image.topics.by_name
        return sum(len(by_name[name].partitions) for name in names if name in by_name) > PARTITIONS_AT_ONCE

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Steps[Outcome]:
        try:
            return (yield from self._heartbeat(request, caller, image, now_ms))
        except KafkaError as error:
            reply = ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message or None)
            return Outcome(reply=reply)

    def _heartbeat(
        self, request: ShareGroupHeartbeatRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Steps[Outcome]:
        validation.check(request)
        if request.member_epoch == LEAVING_EPOCH:
            group = self._existing(request.group_id)
            member = leaving.find_leaver(group, request.member_id)
            records = leaving.remove(self.state, group, [member], image)
            reply = ShareGroupHeartbeatResponse(
                member_id=request.member_id, member_epoch=request.member_epoch
            )
            return Outcome(records, reply)
        group = self._group_for(request.group_id, request.member_epoch == JOINING_EPOCH)
        decision = yield from heartbeat(self.state, group, request, caller, (now_ms, image))
        outcome = decision.outcome
        if decision.missing and not self._calls.is_full:
            missing = decision.missing
            states = (group.states or NO_STATE).with_initializing(missing)
            outcome.records.append(entries.states(group.group_id, states, image.topics))
            self.state.note_asked(group.group_id, partitions_of(missing), decision.epoch, now_ms)
            to_ask = initialization.request(
                group.group_id, decision.epoch, initialization.without_offsets(missing)
            )
            outcome.state_calls = (self._calls.add(to_ask, Initializing(group.group_id, decision.epoch)),)
        return outcome

    def _group_for(self, group_id: str, joins: bool) -> ShareGroup:
        """The group, or a new one for a member that joins."""
        group = self.state.groups.get(group_id)
        if group is not None:
            return group
        if self._is_other_kind(group_id):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        if not joins:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
        return ShareGroup(group_id)

    def _existing(self, group_id: str) -> ShareGroup:
        group = self.state.groups.get(group_id)
        if group is None:
            what = "is not a share group" if self._is_other_kind(group_id) else "not found"
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")
        return group

    def describe(self, group_id: str, image: MetadataImage) -> ShareGroupDescribeResponse.DescribedGroup:
        group = self.state.groups.get(group_id)
        if group is None:
            return describing.not_found(group_id, self._is_other_kind(group_id))
        return describing.described(group, self.state.assignor.name, image)

    def initialized_partitions(self, group_id: str) -> Partitions:
        """The partitions that have state with share coordinators; none of an unknown group."""
        group = self.state.groups.get(group_id)
        return (group.states or NO_STATE).initialized_partitions() if group is not None else {}

    def _alter_offsets(
        self, request: AlterShareGroupOffsetsRequest, image: MetadataImage, now_ms: int
    ) -> Outcome:
        try:
            if not request.group_id:
                raise KafkaError(ErrorCode.INVALID_GROUP_ID)
            group = self._group_for(request.group_id, joins=True)
            return self.administration.alter(group, request, image, now_ms)
        except KafkaError as error:
            reply = AlterShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)
            return Outcome(reply=reply)

    def _delete_offsets(self, request: DeleteShareGroupOffsetsRequest, image: MetadataImage) -> Outcome:
        try:
            if not request.group_id:
                raise KafkaError(ErrorCode.INVALID_GROUP_ID)
            group = self._existing(request.group_id)
            return self.administration.delete_offsets(group, request, image)
        except KafkaError as error:
            reply = DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)
            return Outcome(reply=reply)

    # Responses of share coordinators

    def state_response(
        self, number: int, response: Message, image: MetadataImage
    ) -> Outcome | DeletingGroups | None:
        """Go on with the work that waited for this response. A DeleteGroups request is returned when all its
        groups are without state."""
        work = self._calls.pop(number)
        administration = self.administration
        if work is None:
            return None
        if isinstance(work, Initializing):
            return Outcome(administration.initialized(work.group_id, work.epoch, response, image))  # type: ignore[arg-type]
        if isinstance(work, Altering):
            return administration.altered(work, response, image)  # type: ignore[arg-type]
        if isinstance(work, DeletingOffsets):
            return administration.offsets_deleted(work, response, image)  # type: ignore[arg-type]
        return work.whole if administration.state_deleted(work, response) else None  # type: ignore[arg-type]

    def forget_calls(self, calls: Sequence[StateCall]) -> None:
        """Forget requests to share coordinators that are not sent: their records could not be written."""
        for call in calls:
            self._calls.pop(call.number)

    def undo_decision(self, group_id: str) -> bool:
        """Undo after the records of a heartbeat could not be written: look at the group again."""
        group = self.state.groups.get(group_id)
        if group is not None:
            group.metadata_is_fresh = group.is_settled = False
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
        at_ms = now_ms + state.settings.share_session_timeout_ms
        for group in list(state.groups.values()):
            yield
            for member_id in group.members:
                state.timers.set(Due.SESSION, group.group_id, member_id, at_ms)

    def unload(self) -> list[tuple[Token, Message]]:
        responses = dict(refused for work in self._calls.clear() for refused in refusals(work))
        self.state.clear()
        self._deleted.clear()
        return list(responses.items())

    # Time

    def next_deadline_ms(self) -> int | None:
        due = [at_ms for at_ms in (self.state.timers.next_ms(), self._deleted.next_deadline_ms()) if at_ms]
        return min(due, default=None)

    def on_clock_set(self, by_ms: int) -> None:
        self.state.on_clock_set(by_ms)
        self._deleted.on_clock_set(by_ms)

    def on_timer(self, now_ms: int, image: MetadataImage) -> list[Outcome]:
        """Remove members whose sessions ended, and deleted topics. Returns at most one outcome per group for
        each: its records must be applied first."""
        state = self.state
        expired: dict[str, list[str]] = {}
        for _ in range(TIMERS_PER_TURN):
            deadline = state.timers.pop_due(now_ms)
            if deadline is None:
                break
            expired.setdefault(deadline.group_id, []).append(deadline.member_id)
        outcomes = []
        for group_id, member_ids in expired.items():
            group = state.groups.get(group_id)
            if group is not None:
                members = [group.members[member_id] for member_id in member_ids if member_id in group.members]
                if members:
                    outcomes.append(Outcome(leaving.remove(state, group, members, image)))
        return outcomes + self._deleted.on_timer(now_ms, image)

    def metadata_changed(self, image: MetadataImage, changes: TopicChanges, now_ms: int) -> list[Outcome]:
        """Mark groups whose topics changed. `on_timer` removes deleted topics."""
        state = self.state
        for names in (changes.created, changes.altered, changes.deleted):
            for name in names:
                for group in state.subscribers.of(name):
                    group.metadata_is_fresh = False
        if changes.deleted:
            self._deleted.add(set(changes.deleted.values()), now_ms)
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
        raise not_a_consumer_group(group_id)

    def check_transactional_commit(
        self, group_id: str, member_id: str, instance_id: str | None, epoch: int
    ) -> PartitionCheck | None:
        raise not_a_consumer_group(group_id)

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """A share group has no committed offsets; that is no error."""

    def check_offset_delete(self, group_id: str) -> None:
        raise not_a_consumer_group(group_id)

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        return topic in self.state.groups[group_id].topic_counts

    def check_delete(self, group_id: str) -> None:
        if self.state.groups[group_id].members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def tombstones(self, group_id: str) -> list[Entry]:
        return leaving.tombstones(self.state.groups[group_id])

    def expires_since(self, group_id: str) -> int | None:
        """Share groups do not expire: their state with share coordinators would stay behind."""
        return KEEP_ALL

    def counts(self) -> Counter[ShareGroupState]:
        """The number of groups in each state."""
        return Counter(group.state for group in self.state.groups.values())

    def listed(self, group_id: str) -> ListGroupsResponse.ListedGroup | None:
        group = self.state.groups.get(group_id)
        return None if group is None else describing.listed(group)
