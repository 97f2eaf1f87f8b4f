"""The groups of one partition of `__consumer_offsets`: every request about them comes here.

In: requests (a batched one names only groups of this shard), records to apply, time, metadata. Out: outcomes.
One object per kind of group does the work, and `Offsets`; this module chooses which.
Does not know: the log, sockets, the clock, authorization.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from barnabas.groups.administration import GroupAdministration
from barnabas.groups.assignors.spec import Assignor
from barnabas.groups.basics.kind import GroupKind
from barnabas.groups.basics.member_ids import Rng
from barnabas.groups.basics.outcome import Caller, Outcome, Token, Tokens
from barnabas.groups.basics.rebalances import Rebalances
from barnabas.groups.basics.records import Entry
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.basics.steps import PORTION
from barnabas.groups.classic.coordinator import ClassicGroups
from barnabas.groups.consumer.coordinator import ConsumerGroups
from barnabas.groups.offsets import offset_commit, transactional_commit
from barnabas.groups.offsets.expiry import Expiry
from barnabas.groups.offsets.offset_decisions import OffsetDecisions
from barnabas.groups.offsets.offset_requests import is_long_deletion, is_long_fetch
from barnabas.groups.offsets.offsets import Offsets
from barnabas.groups.offsets.topic_removal import TopicRemoval
from barnabas.groups.share.coordinator import ShareGroups
from barnabas.groups.streams.coordinator import StreamsGroups
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps, at_once
from barnabas.metadata.topic_changes import TopicChanges
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.consumer_offsets import (
    GroupMetadataKey,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from barnabas.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
)
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.share_group_describe import (
    ShareGroupDescribeRequest,
)
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from barnabas.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

NULL_PROTOCOL_VERSION = 7  # of JoinGroup: older versions have no null name
CONSUMER_RECORDS = "ConsumerGroup"
SHARE_RECORDS = "ShareGroup"
STREAMS_RECORDS = "StreamsGroup"

Handler = Callable[["GroupShard", Any, Caller, MetadataImage, int], Outcome]
StepsHandler = Callable[[Any, Caller, MetadataImage, int], Steps[Outcome]]


class GroupShard:
    def __init__(
        self,
        settings: GroupSettings,
        rng: Rng,
        now_ms: int,
        assignors: Mapping[str, Assignor] | None = None,
        rebalances: Rebalances | None = None,
    ) -> None:
        """`assignors` are registered by plugins, by the names that the settings use. `rebalances` counts
        for all shards of a broker."""
        self.settings = settings
        tokens = Tokens()
        self.classic = ClassicGroups(settings, rng, tokens)
        self.consumer = ConsumerGroups(
            settings,
            rng,
            self.classic,
            lambda group_id: self._is_other(group_id, self.classic, self.consumer),
            assignors,
        )
        self.share = ShareGroups(settings, tokens, lambda group_id: self._is_other(group_id, self.share))
        self.streams = StreamsGroups(
            settings, self.classic, lambda group_id: self._is_other(group_id, self.streams)
        )
        if rebalances is not None:
            self.share.state.rebalances = self.streams.state.rebalances = rebalances
        self.offsets = Offsets()
        self._kinds: list[GroupKind] = [self.classic, self.consumer, self.share, self.streams]
        self.administration = GroupAdministration(
            (self.classic, self.consumer, self.share, self.streams), self.offsets, self._kind_of
        )
        self.decisions = OffsetDecisions(settings, self.offsets, self._kind_of)
        self._expiry = Expiry(settings, self.offsets)
        self._removal = TopicRemoval(self.offsets)
        self._timed: list[TopicRemoval | GroupKind] = [self._removal, *self._kinds]
        self._now_ms = now_ms

    # Called by the host

    def handle(self, request: Message, caller: Caller, image: MetadataImage, now_ms: int) -> Outcome:
        """Decide a request. Its records must be applied before the next request."""
        if now_ms != self._now_ms:
            self._now_ms = now_ms  # all values stored in this millisecond share one object
        handler = HANDLERS.get(type(request))
        if handler is None:
            return at_once(self.steps(request, caller, image, now_ms))
        outcome = handler(self, request, caller, image, self._now_ms)
        if outcome.waiting_token is not None:
            reply_if_done(outcome)
        return outcome

    def is_long(self, request: Message, image: MetadataImage) -> bool:
        """Whether the decision takes so long that it should be made in steps."""
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            return self.consumer.is_long(request, image)
        if isinstance(request, ShareGroupHeartbeatRequest):
            return self.share.is_long(request, image)
        if isinstance(request, StreamsGroupHeartbeatRequest):
            return self.streams.is_long(request, image)
        is_long = IS_LONG.get(type(request))
        return is_long is not None and is_long(self, request)

    def steps(self, request: Message, caller: Caller, image: MetadataImage, now_ms: int) -> Steps[Outcome]:
        """Decide a request in steps. Nothing else may be decided or applied between the steps, unless the
        request only reads (`READ_ONLY`)."""
        found = IN_STEPS.get(type(request))
        if found is None:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the group coordinator does not serve {type(request).__name__}",
            )
        if now_ms != self._now_ms:
            self._now_ms = now_ms
        return found(self)(request, caller, image, self._now_ms)

    def apply_all(self, entries: Sequence[Entry]) -> None:
        """Apply entries in order. A commit has many offsets of one group, so its group is looked up once."""
        group_id: str | None = None
        for entry in entries:
            key, value = entry
            if type(key) is OffsetCommitKey and type(value) is OffsetCommitValue:
                if key.group != group_id:
                    self._create_for(key.group, value)
                    group = self.classic.get(key.group)
                    group_id = key.group if group is None else group.group_id
                key.group = group_id  # both tables share one object
                self.offsets.apply(key, value)
            else:
                group_id = None
                self.apply(entry)

    def apply(self, entry: Entry) -> None:
        """Apply a record that was decided or replayed. Cannot fail, does not look at the clock."""
        key, value = entry
        if isinstance(key, OffsetCommitKey):
            self._apply_offset(key, value)  # type: ignore[arg-type]
        elif isinstance(key, GroupMetadataKey):
            self.classic.apply(entry)
        elif isinstance(key, LegacyOffsetCommitKey):
            self._apply_offset(*upgraded(key, value))
        elif type(key).__name__.startswith(CONSUMER_RECORDS):
            if value is not None:
                self.classic.remove_simple(key.group_id)  # type: ignore[attr-defined]
            self.consumer.apply(entry)
        elif type(key).__name__.startswith(SHARE_RECORDS):
            self.share.apply(entry)
        elif type(key).__name__.startswith(STREAMS_RECORDS):
            if value is not None:
                self.classic.remove_simple(key.group_id)  # type: ignore[attr-defined]
            self.streams.apply(entry)

    def apply_pending(self, producer_id: int, entry: Entry) -> None:
        """Apply a record of an open transaction. It takes effect in `complete_transaction`."""
        key, value = entry
        if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue):
            self._create_for(key.group, value)
            self.offsets.apply_pending(producer_id, key, value)
        else:
            self.apply(entry)

    def complete_transaction(self, producer_id: int, producer_epoch: int, *, is_commit: bool) -> None:
        """End a transaction whose marker is in the log: its offsets become committed, or are dropped."""
        self.offsets.end_transaction(producer_id, is_commit=is_commit)

    def state_response(self, number: int, response: Message, image: MetadataImage, now_ms: int) -> Outcome:
        """Go on with what waited for a response of share coordinators (`Outcome.state_calls`)."""
        return self.administration.state_response(number, response, image)

    def configure(self, settings: GroupSettings) -> None:
        """Change the settings at run time."""
        self.settings = self.decisions.settings = settings
        for kind in self._kinds:
            kind.configure(settings)

    def replayed(self, now_ms: int) -> Steps[None]:
        """Start the sessions of restored members, after everything was replayed. If more is replayed
        later, it is called again."""
        for kind in self._kinds:
            yield from kind.replayed(now_ms)

    def loaded(self, now_ms: int) -> None:
        """Start to serve requests: nothing more is replayed."""
        for kind in self._kinds:
            kind.loaded(now_ms)
        self._expiry.start(now_ms)

    def next_deadline_ms(self) -> int | None:
        """When to call `on_timer`. It may be too early, never too late."""
        found = self._expiry.next_deadline_ms()
        for source in self._timed:
            deadline_ms = source.next_deadline_ms()
            if deadline_ms is not None and (found is None or deadline_ms < found):
                found = deadline_ms
        return found

    def on_clock_set(self, by_ms: int) -> None:
        """Shift deadlines after the wall clock was set: they count monotonic time, records hold wall-clock
        time."""
        for kind in self._kinds:
            kind.on_clock_set(by_ms)
        self._expiry.on_clock_set(by_ms)
        self._removal.on_clock_set(by_ms)

    def on_timer(self, now_ms: int, image: MetadataImage) -> list[Outcome]:
        outcomes = [outcome for kind in self._kinds for outcome in kind.on_timer(now_ms, image)]
        removed = self._removal.on_timer(now_ms, image.topics)
        # One after the other: the records of one are applied before the other reads the offsets.
        return outcomes + (removed or self._expiry.on_timer(now_ms, self._group_ids, self._kind_of))

    def metadata_changed(self, image: MetadataImage, changes: TopicChanges, now_ms: int) -> list[Outcome]:
        """React to created, grown or deleted topics. `on_timer` removes the offsets of deleted ones."""
        outcomes = []
        for kind in self._kinds:
            outcomes += kind.metadata_changed(image, changes, now_ms)
        if changes.deleted:
            self._removal.deleted(changes.deleted, now_ms)
        return outcomes

    def unload(self) -> list[tuple[Token, Message]]:
        """Drop everything, because another broker leads the partition. Returns NOT_COORDINATOR for every
        waiting request."""
        return [response for kind in self._kinds for response in kind.unload()]

    # Kinds of groups

    def _kind_of(self, group_id: str) -> GroupKind | None:
        if self.classic.owns(group_id):
            return self.classic
        return next((kind for kind in self._kinds if kind.owns(group_id)), None)

    def _is_other(self, group_id: str, *kinds: GroupKind) -> bool:
        """Whether the group exists and is of another kind than these."""
        found = self._kind_of(group_id)
        return found is not None and found not in kinds

    def _group_ids(self) -> list[str]:
        return [group_id for kind in self._kinds for group_id in kind.group_ids()]

    @property
    def group_count(self) -> int:
        return sum(kind.group_count for kind in self._kinds)

    def _apply_offset(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        if value is not None:
            self._create_for(key.group, value)
            group = self.classic.get(key.group)
            if group is not None:
                key.group = group.group_id  # both tables share one object
        self.offsets.apply(key, value)

    def _create_for(self, group_id: str, value: OffsetCommitValue) -> None:
        """Create a group that has only offsets and was never joined."""
        if self._kind_of(group_id) is None:
            self.classic.create_simple(group_id, value.commit_timestamp)

    def _classic_protocol(self, request: Any, caller: Caller, image: MetadataImage, now_ms: int) -> Outcome:
        group_id = request.group_id
        kind = self._kind_of(group_id)
        if kind is None or kind is self.classic:
            return self.classic.handle(request, caller, image, now_ms)
        joins = isinstance(request, JoinGroupRequest)
        if joins and kind in (self.consumer, self.streams) and kind.is_empty(group_id):
            # The group has no members: a client of the classic protocol may take it over.
            tombstones = kind.tombstones(group_id)
            outcome = self.classic.handle(request, caller, image, now_ms)
            if self.classic.owns(group_id):
                outcome.records[:0] = tombstones
            return outcome
        if kind is self.consumer:
            return self.consumer.handle(request, caller, image, now_ms)
        if joins:
            return Outcome(reply=inconsistent_protocol(caller.version))
        return self.classic.handle(request, caller, image, now_ms)  # it does not know the group

    def _consumer_protocol(self, request: Any, caller: Caller, image: MetadataImage, now_ms: int) -> Outcome:
        return self.consumer.handle(request, caller, image, now_ms)

    def _share_protocol(self, request: Any, caller: Caller, image: MetadataImage, now_ms: int) -> Outcome:
        return self.share.handle(request, caller, image, now_ms)

    def _streams_protocol(self, request: Any, caller: Caller, image: MetadataImage, now_ms: int) -> Outcome:
        return self.streams.handle(request, caller, image, now_ms)

    def _commit(self, request: Any, caller: Caller, image: MetadataImage, now_ms: int) -> Outcome:
        return self.decisions.commit(request, caller, image, now_ms)


def inconsistent_protocol(version: int) -> JoinGroupResponse:
    """The response to a join of a group whose kind has other protocols."""
    name = None if version >= NULL_PROTOCOL_VERSION else ""
    return JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, protocol_name=name)


def reply_if_done(outcome: Outcome) -> None:
    """Reply at once to a request that has both begun to wait and got its response."""
    for position, (token, response) in enumerate(outcome.responses):
        if token == outcome.waiting_token:
            outcome.reply, outcome.waiting_token = response, None
            del outcome.responses[position]
            return


def upgraded(
    key: LegacyOffsetCommitKey, value: Message | None
) -> tuple[OffsetCommitKey, OffsetCommitValue | None]:
    """An offset record in the form of very old versions of Kafka, converted."""
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
    ShareGroupHeartbeatRequest: GroupShard._share_protocol,
    AlterShareGroupOffsetsRequest: GroupShard._share_protocol,
    DeleteShareGroupOffsetsRequest: GroupShard._share_protocol,
    StreamsGroupHeartbeatRequest: GroupShard._streams_protocol,
    OffsetCommitRequest: GroupShard._commit,
}
IN_STEPS: dict[type[Message], Callable[[GroupShard], StepsHandler]] = {
    ConsumerGroupHeartbeatRequest: lambda shard: shard.consumer.heartbeat,
    ShareGroupHeartbeatRequest: lambda shard: shard.share.heartbeat,
    StreamsGroupHeartbeatRequest: lambda shard: shard.streams.heartbeat,
    OffsetCommitRequest: lambda shard: shard.decisions.commit_in_steps,
    TxnOffsetCommitRequest: lambda shard: shard.decisions.commit_in_transaction,
    OffsetFetchRequest: lambda shard: shard.decisions.fetch,
    OffsetDeleteRequest: lambda shard: shard.decisions.delete,
    DeleteGroupsRequest: lambda shard: shard.administration.delete,
    ListGroupsRequest: lambda shard: shard.administration.list_groups,
    DescribeGroupsRequest: lambda shard: shard.administration.describe_groups,
    ConsumerGroupDescribeRequest: lambda shard: shard.administration.describe_consumer_groups,
    ShareGroupDescribeRequest: lambda shard: shard.administration.describe_share_groups,
    StreamsGroupDescribeRequest: lambda shard: shard.streams.describe_in_steps,
}
IS_LONG: dict[type[Message], Callable[[GroupShard, Any], bool]] = {
    OffsetCommitRequest: lambda shard, request: offset_commit.is_long(request),
    TxnOffsetCommitRequest: lambda shard, request: transactional_commit.is_long(request),
    OffsetFetchRequest: lambda shard, request: is_long_fetch(request, shard.offsets),
    OffsetDeleteRequest: lambda shard, request: is_long_deletion(request),
    DeleteGroupsRequest: lambda shard, request: shard.administration.is_much_to_delete(request),
    ListGroupsRequest: lambda shard, request: shard.group_count > PORTION,
    DescribeGroupsRequest: lambda shard, request: len(request.groups) > PORTION,
    ConsumerGroupDescribeRequest: lambda shard, request: len(request.group_ids) > PORTION,
    ShareGroupDescribeRequest: lambda shard, request: len(request.group_ids) > PORTION,
    StreamsGroupDescribeRequest: lambda shard, request: len(request.group_ids) > PORTION,
}
MAY_BE_LONG: frozenset[type[Message]] = frozenset(IN_STEPS)
READ_ONLY: frozenset[type[Message]] = frozenset(
    (
        ListGroupsRequest,
        DescribeGroupsRequest,
        ConsumerGroupDescribeRequest,
        ShareGroupDescribeRequest,
        StreamsGroupDescribeRequest,
    )
)
"""Requests whose steps may interleave with changes: each group is shown as it is at some moment."""
