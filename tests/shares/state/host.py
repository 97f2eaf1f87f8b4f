"""A host for a shard of share state: it keeps the records, applies them, and can replay them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from barnabas.metadata.features import FeaturesImage
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage
from barnabas.metadata.topic_changes import TopicChanges
from barnabas.metadata.topics import TopicImage, TopicsImage
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest
from barnabas.protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from barnabas.protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from barnabas.protocol.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from barnabas.protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from barnabas.shares.state.apis import Item, request_of, results_of
from barnabas.shares.state.keys import ShareKey
from barnabas.shares.state.records import Entry, decode, encode
from barnabas.shares.state.settings import ShareStateSettings
from barnabas.shares.state.shard import ShareStateShard

TOPIC_ID = bytes(range(16))
OTHER_ID = bytes(range(1, 17))
PARTITIONS = 4
WriteData = WriteShareGroupStateRequest.WriteStateData.PartitionData


def image_with(*topic_ids: bytes, share_version: int = 1) -> MetadataImage:
    topics = {
        each: TopicImage(each.hex(), each, dict.fromkeys(range(PARTITIONS)))  # type: ignore[arg-type]
        for each in topic_ids
    }
    features = FeaturesImage({"share.version": share_version})
    return replace(EMPTY_IMAGE, topics=TopicsImage(by_id=topics), features=features)


class Host:
    def __init__(self, **settings: int) -> None:
        self.settings = ShareStateSettings(**settings)
        self.now_ms = 1_000
        self.image = image_with(TOPIC_ID, OTHER_ID)
        self.shard = ShareStateShard(self.settings, self.now_ms)
        self.log: list[tuple[int, tuple[bytes, bytes | None]]] = []  # with offsets
        self.end_offset = 0

    def _take(self, records: list[Entry]) -> None:
        self.shard.next_offset = self.end_offset
        for entry in records:
            self.log.append((self.end_offset, encode(entry)))
            self.end_offset += 1
        self.shard.apply_all(records)

    @property
    def entries(self) -> list[Entry]:
        found = [decode(*encoded) for _, encoded in self.log]
        return [entry for entry in found if entry is not None]

    def prune(self, offset: int) -> None:
        self.log = [each for each in self.log if each[0] >= offset]
        self.shard.pruned(offset)

    def replayed(self) -> ShareStateShard:
        """A new shard with what the log has."""
        shard = ShareStateShard(self.settings, self.now_ms)
        for offset, encoded in self.log:
            entry = decode(*encoded)
            assert entry is not None
            shard.next_offset = offset
            shard.apply(entry)
        return shard

    # Requests

    def ask(self, kind: type[Message], partition: int, topic_id: bytes, **data: Any) -> Any:
        key = ShareKey("g", topic_id, partition)
        request = request_of(kind, [Item(key, data_type(kind)(partition=partition, **data))])
        outcome = self.shard.handle(request, self.image, self.now_ms)
        self._take(outcome.records)
        [result] = results_of(outcome.reply)
        return result.data

    def initialize(
        self, partition: int = 0, *, epoch: int = 1, start: int = 0, topic_id: bytes = TOPIC_ID
    ) -> Any:
        data = {"state_epoch": epoch, "start_offset": start}
        return self.ask(InitializeShareGroupStateRequest, partition, topic_id, **data)

    def write(
        self,
        start: int,
        *batches: tuple[int, int, int, int],
        partition: int = 0,
        state_epoch: int = 1,
        leader_epoch: int = 0,
        complete: int = 0,
    ) -> Any:
        """Batches are first and last offset, state, count."""
        return self.ask(
            WriteShareGroupStateRequest,
            partition,
            TOPIC_ID,
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start,
            delivery_complete_count=complete,
            state_batches=[
                WriteData.StateBatch(
                    first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
                )
                for first, last, state, count in batches
            ],
        )

    def read(self, partition: int = 0, *, leader_epoch: int = -1) -> Any:
        return self.ask(ReadShareGroupStateRequest, partition, TOPIC_ID, leader_epoch=leader_epoch)

    def summary(self, partition: int = 0) -> Any:
        return self.ask(ReadShareGroupStateSummaryRequest, partition, TOPIC_ID)

    def delete(self, partition: int = 0) -> Any:
        return self.ask(DeleteShareGroupStateRequest, partition, TOPIC_ID)

    # Time and metadata

    def pass_time(self, by_ms: int) -> list[int]:
        """Out: the offsets that the log was told to start at."""
        self.now_ms += by_ms
        found: list[int] = []
        while True:
            deadline_ms = self.shard.next_deadline_ms()
            if deadline_ms is None or deadline_ms > self.now_ms:
                return found
            for outcome in self.shard.on_timer(self.now_ms, self.image):
                self._take(outcome.records)
                if outcome.prune_offset is not None:
                    found.append(outcome.prune_offset)
                    self.prune(outcome.prune_offset)

    def delete_topic(self, topic_id: bytes) -> None:
        self.image = image_with(*(each for each in self.image.topics.by_id if each != topic_id))
        changes = TopicChanges(deleted={topic_id.hex(): topic_id})
        for outcome in self.shard.metadata_changed(self.image, changes, self.now_ms):
            self._take(outcome.records)


def data_type(kind: Any) -> Any:
    [topics] = [field for field in kind.schema.fields if field.name == "topics"]
    return topics.struct.PartitionData


def error(data: Any) -> ErrorCode:
    return ErrorCode(data.error_code)


def state_of(shard: ShareStateShard) -> dict[ShareKey, tuple[Any, ...]]:
    """Everything that requests can notice."""
    return {
        key: (
            state.snapshot_epoch,
            state.state_epoch,
            state.leader_epoch,
            state.start_offset,
            state.delivery_complete_count,
            state.created_ms,
            state.written_ms,
            tuple(state.batches.ranges),
            state.updates,
        )
        for key, state in shard.states.items()
    }
