"""A predictable shard: commits are records, joins wait until a given time or the next sync."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.groups.basics.outcome import Caller, Outcome, Token
from barnabas.groups.basics.records import Entry
from barnabas.groups.offsets.pending_offsets import OffsetKey, PendingOffsets
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.log_records.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

Topic = OffsetCommitResponse.OffsetCommitResponseTopic
FetchTopic = OffsetFetchResponse.OffsetFetchResponseTopic


class FakeShard:
    def __init__(self, *_: object) -> None:
        self.offsets: dict[tuple[str, str, int], int] = {}
        self.pending = PendingOffsets()
        self.joining: list[tuple[Token, int]] = []  # with the deadline of each
        self.is_loaded = False
        self._tokens = 0

    def handle(self, request: Message, caller: Caller, image: object, now_ms: int) -> Outcome:
        if isinstance(request, OffsetCommitRequest):
            return self._commit(request)
        if isinstance(request, OffsetFetchRequest):
            return Outcome(reply=self._fetch(request))
        if isinstance(request, JoinGroupRequest):
            self._tokens += 1
            token = Token(self._tokens)
            self.joining.append((token, now_ms + request.rebalance_timeout_ms))
            return Outcome(waiting_token=token)
        if isinstance(request, SyncGroupRequest):
            key = OffsetCommitKey(group=request.group_id, topic="synced", partition=0)
            return Outcome([Entry(key, OffsetCommitValue())], SyncGroupResponse(), responses=self._joined())
        assert isinstance(request, HeartbeatRequest)
        return Outcome(reply=HeartbeatResponse())

    def _commit(self, request: OffsetCommitRequest) -> Outcome:
        records = []
        topics = []
        for topic in request.topics:
            answers = []
            for each in topic.partitions:
                key = OffsetCommitKey(
                    group=request.group_id, topic=topic.name, partition=each.partition_index
                )
                value = OffsetCommitValue(
                    offset=each.committed_offset, metadata=each.committed_metadata or ""
                )
                records.append(Entry(key, value))
                answers.append(Topic.OffsetCommitResponsePartition(partition_index=each.partition_index))
            topics.append(Topic(name=topic.name, partitions=answers))
        return Outcome(records, OffsetCommitResponse(topics=topics))

    def _fetch(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        topics = []
        for topic in request.topics or ():
            found = [
                FetchTopic.OffsetFetchResponsePartition(
                    partition_index=index,
                    committed_offset=self.offsets.get((request.group_id, topic.name, index), -1),
                )
                for index in topic.partition_indexes
            ]
            topics.append(FetchTopic(name=topic.name, partitions=found))
        return OffsetFetchResponse(topics=topics)

    def _joined(self) -> list[tuple[Token, Message]]:
        joining, self.joining = self.joining, []
        return [(token, JoinGroupResponse(generation_id=1)) for token, _ in joining]

    def apply(self, entry: Entry) -> None:
        key: Any = entry.key
        value: Any = entry.value
        where = key.group, key.topic, key.partition
        if value is None:
            self.offsets.pop(where, None)
        else:
            self.offsets[where] = value.offset
            self.pending.committed(OffsetKey(*where))

    def apply_all(self, entries: list[Entry]) -> None:
        for entry in entries:
            self.apply(entry)

    def is_long(self, request: Message, image: object) -> bool:
        return False

    def apply_pending(self, producer_id: int, entry: Entry) -> None:
        key: Any = entry.key
        value: Any = entry.value
        self.pending.add(producer_id, OffsetKey(key.group, key.topic, key.partition), value)

    def complete_transaction(self, producer_id: int, producer_epoch: int, *, is_commit: bool) -> None:
        for key, value in self.pending.end(producer_id, is_commit=is_commit):
            self.offsets[key] = value.offset

    def configure(self, settings: object) -> None:
        pass

    def replayed(self, now_ms: int) -> Iterator[None]:
        return iter(())

    def loaded(self, now_ms: int) -> None:
        self.is_loaded = True

    def next_deadline_ms(self) -> int | None:
        return min((deadline_ms for _, deadline_ms in self.joining), default=None)

    def on_clock_set(self, by_ms: int) -> None:
        self.joining = [(token, deadline_ms + by_ms) for token, deadline_ms in self.joining]

    def on_timer(self, now_ms: int, image: object) -> list[Outcome]:
        due = [token for token, deadline_ms in self.joining if deadline_ms <= now_ms]
        self.joining = [each for each in self.joining if each[0] not in due]
        return [Outcome(responses=[(token, JoinGroupResponse(generation_id=2))]) for token in due]

    def metadata_changed(self, image: object, changes: object, now_ms: int) -> list[Outcome]:
        return []

    def unload(self) -> list[tuple[Token, Message]]:
        joining, self.joining = self.joining, []
        return [(token, JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)) for token, _ in joining]
