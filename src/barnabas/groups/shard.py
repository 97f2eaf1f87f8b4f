"""One partition of `__consumer_offsets`: every request about its groups goes in here.

In: requests (batched ones hold only groups of this shard), records to take over, time, metadata. Out:
outcomes. The work is done by one object a kind of group, and by `Offsets`; this module knows whom to ask.
Does not know: the log, sockets, the clock, who may do what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.groups.assignors.spec import Assignor
from barnabas.groups.classic.coordinator import ClassicGroups
from barnabas.groups.consumer.coordinator import ConsumerGroups
from barnabas.groups.expiry import Expiry
from barnabas.groups.kind import GroupKind
from barnabas.groups.member_ids import Rng
from barnabas.groups.offset_requests import (
    TOPIC_ID_VERSION,
    Commit,
    Deletion,
    FetchedGroup,
    asked_groups,
    fetch_group,
    fetch_response,
)
from barnabas.groups.offsets import Offsets
from barnabas.groups.outcome import Caller, Outcome, Token, Tokens
from barnabas.groups.records import Entry
from barnabas.groups.settings import GroupSettings
from barnabas.groups.topic_removal import TopicRemoval
from barnabas.groups.transactional_commit import TransactionalCommit
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topic_changes import TopicChanges
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.consumer_offsets import (
    GroupMetadataKey,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

GROUP_NOT_FOUND_VERSION = 9  # of OffsetCommit: older clients know only that their generation is wrong
NOT_FOUND_IS_AN_ERROR_VERSION = 6  # of DescribeGroups: before, such a group is shown as Dead
CONSUMER_RECORDS = "ConsumerGroup"

Handler = Callable[["GroupShard", Any, Caller, MetadataImage, int], Outcome]


class GroupShard:
    def __init__(
        self,
        settings: GroupSettings,
        rng: Rng,
        now_ms: int,
        assignors: Mapping[str, Assignor] | None = None,
    ) -> None:
        """`assignors` are those that others registered, by the names that the settings give them."""
        self.settings = settings
        tokens = Tokens()
        self.classic = ClassicGroups(settings, rng, tokens)
        self.consumer = ConsumerGroups(settings, rng, self.classic, assignors)
        self.offsets = Offsets()
        self._kinds: list[GroupKind] = [self.classic, self.consumer]
        self._expiry = Expiry(settings, self.offsets)
        self._removal = TopicRemoval(self.offsets)
        self._now_ms = now_ms

    # What the host calls

    def handle(self, request: Message, caller: Caller, image: MetadataImage, now_ms: int) -> Outcome:
        """Decides on a request; its records must be applied before the next one."""
        handler = HANDLERS.get(type(request))
        if handler is None:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"groups take no {type(request).__name__}")
        if now_ms != self._now_ms:
            self._now_ms = now_ms
        outcome = handler(self, request, caller, image, self._now_ms)  # one object for what is kept of it
        if outcome.waits_as is not None:
            answer_if_done(outcome)
        return outcome

    def apply(self, entry: Entry) -> None:
        """Takes over a record, decided or replayed. Cannot fail, does not look at the clock."""
        key, value = entry
        if isinstance(key, OffsetCommitKey):
            self._apply_offset(key, value)  # type: ignore[arg-type]
        elif isinstance(key, GroupMetadataKey):
            self.classic.apply(entry)
        elif isinstance(key, LegacyOffsetCommitKey):
            self._apply_offset(*upgraded(key, value))
        elif type(key).__name__.startswith(CONSUMER_RECORDS):
            if value is not None:
                self.classic.forget_simple(key.group_id)  # type: ignore[attr-defined]
            self.consumer.apply(entry)

    def apply_pending(self, producer_id: int, entry: Entry) -> None:
        """Takes over a record of an open transaction: it counts when `complete_transaction` says so."""
        key, value = entry
        if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue):
            self._create_for(key.group, value)
            self.offsets.apply_pending(producer_id, key, value)
        else:
            self.apply(entry)

    def complete_transaction(self, producer_id: int, producer_epoch: int, *, is_commit: bool) -> None:
        """The marker of a transaction is in the log: what it committed counts, or is forgotten."""
        self.offsets.end_transaction(producer_id, is_commit=is_commit)

    def configure(self, settings: GroupSettings) -> None:
        """Settings were changed while running."""
        self.settings = self.classic.state.settings = self.consumer.state.settings = settings

    def loaded(self, now_ms: int) -> None:
        """Everything was replayed: members that were restored get fresh sessions."""
        for kind in self._kinds:
            kind.loaded(now_ms)
        self._expiry.start(now_ms)

    def next_deadline_ms(self) -> int | None:
        """When `on_time` wants to be called; never too late, and too early does no harm."""
        found = self._expiry.next_deadline_ms()
        for deadline_ms in (
            self._removal.next_deadline_ms(),
            self.classic.next_deadline_ms(),
            self.consumer.next_deadline_ms(),
        ):
            if deadline_ms is not None and (found is None or deadline_ms < found):
                found = deadline_ms
        return found

    def clock_was_set(self, by_ms: int) -> None:
        """Deadlines count time that nobody can set; what is written down has the time that people read."""
        for kind in self._kinds:
            kind.clock_was_set(by_ms)
        self._expiry.clock_was_set(by_ms)
        self._removal.clock_was_set(by_ms)

    def on_time(self, now_ms: int, image: MetadataImage) -> list[Outcome]:
        outcomes = [outcome for kind in self._kinds for outcome in kind.on_time(now_ms, image)]
        removed = self._removal.on_time(now_ms, image.topics)
        # One after the other: what either writes is applied before the other looks.
        return outcomes + (removed or self._expiry.on_time(now_ms, self._group_ids, self._kind_of))

    def metadata_changed(self, image: MetadataImage, changes: TopicChanges, now_ms: int) -> list[Outcome]:
        """Topics came, grew or went: `on_time` removes the offsets of those that went."""
        outcomes = []
        for kind in self._kinds:
            outcomes += kind.metadata_changed(image, changes, now_ms)
        if changes.deleted:
            self._removal.deleted(changes.deleted, now_ms)
        return outcomes

    def unload(self) -> list[tuple[Token, Message]]:
        """Answers for all who wait (NOT_COORDINATOR): the partition is led elsewhere now."""
        return [answer for kind in self._kinds for answer in kind.unload()]

    # Whose group it is

    def _kind_of(self, group_id: str) -> GroupKind | None:
        if self.classic.owns(group_id):
            return self.classic
        return next((kind for kind in self._kinds if kind.owns(group_id)), None)

    def _group_ids(self) -> list[str]:
        return [*self.classic.state.groups, *self.consumer.state.groups]

    def _apply_offset(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        if value is not None:
            self._create_for(key.group, value)
            group = self.classic.get(key.group)
            if group is not None:
                key.group = group.group_id  # one object for both tables
        self.offsets.apply(key, value)

    def _create_for(self, group_id: str, value: OffsetCommitValue) -> None:
        """A group that was never joined exists by its offsets."""
        if self._kind_of(group_id) is None:
            self.classic.create_simple(group_id, value.commit_timestamp)

    def _classic_protocol(self, request: Any, caller: Caller, image: MetadataImage, now_ms: int) -> Outcome:
        consumer = self.consumer
        if not consumer.owns(request.group_id):
            return self.classic.handle(request, caller, image, now_ms)
        if not isinstance(request, JoinGroupRequest) or not consumer.is_empty(request.group_id):
            return consumer.handle(request, caller, image, now_ms)
        # Nobody is left in it: a client of the classic protocol takes the group over as it is.
        tombstones = consumer.tombstones(request.group_id)
        outcome = self.classic.handle(request, caller, image, now_ms)
        if self.classic.owns(request.group_id):
            outcome.records[:0] = tombstones
        return outcome

    def _consumer_protocol(self, request: Any, caller: Caller, image: MetadataImage, now_ms: int) -> Outcome:
        return self.consumer.handle(request, caller, image, now_ms)

    # Offsets

    def _commit(
        self, request: OffsetCommitRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Outcome:
        commit = Commit(request, caller.version, image.topics)
        if not commit.accepted:
            return Outcome(reply=commit.response)
        epoch = request.generation_id_or_member_epoch
        check = None
        kind = self._kind_of(request.group_id)
        if kind is None:
            if epoch >= 0:
                is_old = caller.version < GROUP_NOT_FOUND_VERSION
                error = ErrorCode.ILLEGAL_GENERATION if is_old else ErrorCode.GROUP_ID_NOT_FOUND
                return Outcome(reply=commit.refuse(error))
        else:
            try:
                check = kind.check_commit(
                    request.group_id,
                    request.member_id,
                    request.group_instance_id,
                    epoch,
                    caller.version,
                    now_ms,
                )
            except KafkaError as refused:
                return Outcome(reply=commit.refuse(refused.code))
        if not commit.fits(self.settings.record_bytes_max, self.settings.offset_metadata_bytes_max):
            return Outcome(reply=commit.refuse(ErrorCode.UNKNOWN_SERVER_ERROR))
        error = commit.first_error(check) if check is not None else ErrorCode.NONE
        if error:
            return Outcome(reply=commit.refuse(error))
        records = commit.records(self.settings.offset_metadata_bytes_max, now_ms)
        return Outcome(records, commit.response)

    def _commit_in_transaction(
        self, request: TxnOffsetCommitRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Outcome:
        """The host appends the records as part of the producer's transaction, and applies them as pending."""
        commit = TransactionalCommit(request, image.topics)
        if not commit.accepted:
            return Outcome(reply=commit.refuse(ErrorCode.NONE))
        group_id = request.group_id
        kind = self._kind_of(group_id)
        try:
            if not group_id:
                raise KafkaError(ErrorCode.INVALID_GROUP_ID)
            if kind is None and request.generation_id >= 0:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
            if kind is not None:
                check = kind.check_transactional_commit(
                    group_id, request.member_id, request.group_instance_id, request.generation_id
                )
                commit.check(check, self.settings.offset_metadata_bytes_max)
        except KafkaError as refused:
            return Outcome(reply=commit.refuse(refused.code))
        records, response = commit.records(self.settings.offset_metadata_bytes_max, now_ms)
        return Outcome(records, response)

    def _fetch(
        self, request: OffsetFetchRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Outcome:
        version = caller.version
        groups = []
        for asked in asked_groups(request, version):
            kind = self._kind_of(asked.group_id)
            try:
                if kind is not None:
                    kind.check_fetch(asked.group_id, asked.member_id, asked.member_epoch)
            except KafkaError as refused:
                groups.append(FetchedGroup(group_id=asked.group_id, error_code=refused.code))
                continue
            uses_ids = version >= TOPIC_ID_VERSION
            groups.append(
                fetch_group(
                    self.offsets, asked, image.topics, uses_ids=uses_ids, is_stable=request.require_stable
                )
            )
        return Outcome(reply=fetch_response(groups, version))

    def _delete_offsets(
        self, request: OffsetDeleteRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Outcome:
        group_id = request.group_id
        if not group_id:
            return Outcome(reply=OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        kind = self._kind_of(group_id)
        if kind is None:
            return Outcome(reply=OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND))
        try:
            kind.check_offset_delete(group_id)
        except KafkaError as refused:
            return Outcome(reply=OffsetDeleteResponse(error_code=refused.code))
        deletion = Deletion(request, image.topics)
        names = {topic for topic, _ in deletion.accepted}
        subscribed = {topic for topic in names if kind.is_subscribed(group_id, topic)}
        return Outcome(deletion.records(self.offsets, subscribed), deletion.response)

    # Administration

    def _delete_groups(
        self, request: DeleteGroupsRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Outcome:
        response = DeleteGroupsResponse()
        records: list[Entry] = []
        for group_id in dict.fromkeys(request.groups_names):
            result = DeleteGroupsResponse.DeletableGroupResult(group_id=group_id)
            response.results.append(result)
            kind = self._kind_of(group_id)
            if kind is None:
                result.error_code = ErrorCode.GROUP_ID_NOT_FOUND
                continue
            try:
                kind.check_delete(group_id)
            except KafkaError as refused:
                result.error_code = refused.code
            else:
                records += self.offsets.tombstones(group_id)
                records += kind.tombstones(group_id)
        return Outcome(records, response)

    def _list_groups(
        self, request: ListGroupsRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Outcome:
        """Filters do not mind case; names that no state or type has match nothing."""
        states = {state.strip().lower() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}
        listed = [
            group
            for kind in self._kinds
            for group in kind.listed()
            if (not states or group.group_state.lower() in states)
            and (not types or group.group_type.lower() in types)
        ]
        return Outcome(reply=ListGroupsResponse(groups=listed))

    def _describe_groups(
        self, request: DescribeGroupsRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Outcome:
        return Outcome(
            reply=DescribeGroupsResponse(
                groups=[self._describe(group_id, caller.version) for group_id in request.groups]
            )
        )

    def _describe(self, group_id: str, version: int) -> DescribeGroupsResponse.DescribedGroup:
        found = self.classic.describe(group_id)
        if found is not None:
            return found
        dead = DescribeGroupsResponse.DescribedGroup(group_id=group_id, group_state="Dead")
        if version >= NOT_FOUND_IS_AN_ERROR_VERSION:
            dead.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            is_other = self._kind_of(group_id) is not None
            dead.error_message = f"Group {group_id} {'is not a classic group' if is_other else 'not found'}."
        return dead


def answer_if_done(outcome: Outcome) -> None:
    """A request that waits and is answered in the same breath does not wait."""
    for position, (token, response) in enumerate(outcome.answers):
        if token == outcome.waits_as:
            outcome.reply, outcome.waits_as = response, None
            del outcome.answers[position]
            return


def upgraded(
    key: LegacyOffsetCommitKey, value: Message | None
) -> tuple[OffsetCommitKey, OffsetCommitValue | None]:
    """An offset as very old versions of Kafka wrote it."""
    new_key = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
    if not isinstance(value, LegacyOffsetCommitValue):
        return new_key, None
    return new_key, OffsetCommitValue(
        offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
    )


HANDLERS: dict[type[Message], Handler] = {
    HeartbeatRequest: GroupShard._classic_protocol,
    JoinGroupRequest: GroupShard._classic_protocol,
    SyncGroupRequest: GroupShard._classic_protocol,
    LeaveGroupRequest: GroupShard._classic_protocol,
    ConsumerGroupHeartbeatRequest: GroupShard._consumer_protocol,
    ConsumerGroupDescribeRequest: GroupShard._consumer_protocol,
    OffsetCommitRequest: GroupShard._commit,
    TxnOffsetCommitRequest: GroupShard._commit_in_transaction,
    OffsetFetchRequest: GroupShard._fetch,
    OffsetDeleteRequest: GroupShard._delete_offsets,
    DeleteGroupsRequest: GroupShard._delete_groups,
    ListGroupsRequest: GroupShard._list_groups,
    DescribeGroupsRequest: GroupShard._describe_groups,
}
