"""A member of a share group on a raw connection, for tests of the leader of a partition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from barnabas.protocol import uuid
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from barnabas.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from barnabas.testing.waiting import wait_until

from .conversation import Conversation

FetchTopic = ShareFetchRequest.FetchTopic
AcknowledgeTopic = ShareAcknowledgeRequest.AcknowledgeTopic
InitTopic = InitializeShareGroupStateRequest.InitializeStateData
Acks = Sequence[tuple[int, int, Sequence[int]]]
ACCEPT, RELEASE = [1], [2]
VERSION = 2
SHARE = 2


def topic_id(talk: Conversation, name: str) -> bytes:
    asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)])
    found: bytes = talk.ask(asked, 12).topics[0].topic_id
    return found


def initialize(
    talk: Conversation, group: str, topic: bytes, partitions: int = 1, start: int = 0, epoch: int = 1
) -> None:
    """Initialize the state of a group, as its coordinator does."""
    data = [
        InitTopic.PartitionData(partition=n, state_epoch=epoch, start_offset=start) for n in range(partitions)
    ]
    request = InitializeShareGroupStateRequest(
        group_id=group, topics=[InitTopic(topic_id=topic, partitions=data)]
    )
    key = f"{group}:{uuid.to_text(topic)}:0"

    def is_done() -> bool:
        talk.ask(FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key]), 6)
        results = talk.ask(request, 0).results
        return all(not each.error_code for result in results for each in result.partitions)

    wait_until(is_done, 30, what="the state is initialized")


class ShareMember:
    """It counts the epochs of its session. `begin` and `end` of a fetch may have other calls between."""

    def __init__(self, talk: Conversation, group: str, topic: bytes, name: str, partitions: int = 1) -> None:
        self.talk = talk
        self.group = group
        self.topic = topic
        self.name = name
        self.partitions = partitions
        self.epoch = 0

    def begin(self, *acks: tuple[int, int, Sequence[int]], wait_ms: int = 10_000, **more: Any) -> None:
        """Send a fetch that acknowledges records of partition 0."""
        asked: list[FetchTopic.FetchPartition] = []
        if not self.epoch:
            asked = [FetchTopic.FetchPartition(partition_index=n) for n in range(self.partitions)]
        elif acks:
            batch = FetchTopic.FetchPartition.AcknowledgementBatch
            batches = [
                batch(first_offset=first, last_offset=last, acknowledge_types=list(types))
                for first, last, types in acks
            ]
            asked = [FetchTopic.FetchPartition(partition_index=0, acknowledgement_batches=batches)]
        fields: dict[str, Any] = {
            "max_records": 500,
            "batch_size": 500,
            "max_bytes": 50_000_000,
            "min_bytes": 1,
        }
        request = ShareFetchRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=self.epoch,
            max_wait_ms=wait_ms,
            topics=[FetchTopic(topic_id=self.topic, partitions=asked)] if asked else [],
            **(fields | more),
        )
        self.talk.send((request, VERSION))
        self.epoch += 1

    def end(self) -> ShareFetchResponse:
        response: ShareFetchResponse = self.talk.receive()
        assert not response.error_code, response
        return response

    def fetch(self, *acks: tuple[int, int, Sequence[int]], **more: Any) -> ShareFetchResponse:
        self.begin(*acks, **more)
        return self.end()

    def acknowledge(self, *acks: tuple[int, int, Sequence[int]], epoch: int | None = None) -> int:
        """Acknowledge records of partition 0. Out: the error code."""
        batch = AcknowledgeTopic.AcknowledgePartition.AcknowledgementBatch
        batches = [
            batch(first_offset=first, last_offset=last, acknowledge_types=list(types))
            for first, last, types in acks
        ]
        asked = AcknowledgeTopic.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        request = ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=self.epoch if epoch is None else epoch,
            topics=[AcknowledgeTopic(topic_id=self.topic, partitions=[asked])],
        )
        response = self.talk.ask(request, VERSION)
        self.epoch += 1
        code: int = response.error_code or response.responses[0].partitions[0].error_code
        return code


def acquired(response: ShareFetchResponse) -> list[tuple[int, int, int]]:
    """Ranges of offsets that were acquired, with their delivery counts."""
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in response.responses
        for data in topic.partitions
        for each in data.acquired_records
    ]


def records(response: ShareFetchResponse) -> bytes:
    return b"".join(bytes(data.records or b"") for data in datas(response))


def datas(response: ShareFetchResponse) -> Iterable[Any]:
    return (data for topic in response.responses for data in topic.partitions)
