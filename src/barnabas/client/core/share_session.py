"""A share session: what one member fetches from one broker, and the epoch that orders its requests (KIP-932).

In: the partitions to fetch, acknowledgements, the error code of each response. Out: ShareFetch and
ShareAcknowledge requests that name only what changed. After a lost response the session begins anew; the
broker releases what the member had acquired in the old one. Does not know: connections, records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from barnabas.client.core.acknowledgements import AckBatch
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from barnabas.protocol.messages.share_fetch import ShareFetchRequest

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1
SESSION_ERRORS = frozenset(
    {
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)

FetchTopic = ShareFetchRequest.FetchTopic
FetchPartition = FetchTopic.FetchPartition
AckTopic = ShareAcknowledgeRequest.AcknowledgeTopic
AckPartition = AckTopic.AcknowledgePartition

Place = tuple[bytes, int]  # a topic id and a partition
Acknowledgements = Mapping[Place, Sequence[AckBatch]]


class AcquireMode(IntEnum):
    """Whether a response may exceed the record limit to end with a whole batch (`share.acquire.mode`)."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


@dataclass(frozen=True, slots=True)
class ShareLimits:
    """The limits of one ShareFetch request."""

    wait_ms_max: int = 500
    bytes_min: int = 1
    bytes_max: int = 50 * 1024 * 1024
    records_max: int = 500
    acquire_mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED


class ShareSession:
    """`fetch_request` or `acknowledge_request`, then `answered` or `lost`, one request at a time."""

    def __init__(self, group_id: str, member_id: str) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.epoch = INITIAL_EPOCH
        self.partitions: dict[Place, TopicPartition] = {}

    @property
    def is_new(self) -> bool:
        """Whether the next request opens the session: it cannot carry acknowledgements."""
        return self.epoch == INITIAL_EPOCH

    def fetch_request(
        self,
        wanted: Mapping[Place, TopicPartition],
        acknowledgements: Acknowledgements,
        limits: ShareLimits,
    ) -> ShareFetchRequest:
        """A request for records of `wanted`, which become the partitions of the session."""
        added = list(wanted) if self.is_new else [each for each in wanted if each not in self.partitions]
        removed = [] if self.is_new else [each for each in self.partitions if each not in wanted]
        self.partitions = dict(wanted)
        request = ShareFetchRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=self.epoch,
            max_wait_ms=limits.wait_ms_max,
            min_bytes=limits.bytes_min,
            max_bytes=limits.bytes_max,
            max_records=limits.records_max,
            batch_size=limits.records_max,
            share_acquire_mode=int(limits.acquire_mode),
        )
        topics: dict[bytes, FetchTopic] = {}
        for place in dict.fromkeys([*added, *acknowledgements]):
            topic = topics.setdefault(place[0], FetchTopic(topic_id=place[0], partitions=[]))
            part = FetchPartition.AcknowledgementBatch
            batches = [part(**fields) for fields in plain(acknowledgements.get(place, ()))]
            topic.partitions.append(FetchPartition(partition_index=place[1], acknowledgement_batches=batches))
        request.topics = list(topics.values())
        request.forgotten_topics_data = [
            ShareFetchRequest.ForgottenTopic(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in by_topic_id(removed).items()
        ]
        return request

    def acknowledge_request(
        self, acknowledgements: Acknowledgements, *, closes: bool = False
    ) -> ShareAcknowledgeRequest:
        """A request with acknowledgements alone, the last one of the session if it closes."""
        topics: dict[bytes, AckTopic] = {}
        part = AckPartition.AcknowledgementBatch
        for (topic_id, index), batches in acknowledgements.items():
            topic = topics.setdefault(topic_id, AckTopic(topic_id=topic_id, partitions=[]))
            sent = [part(**fields) for fields in plain(batches)]
            topic.partitions.append(AckPartition(partition_index=index, acknowledgement_batches=sent))
        return ShareAcknowledgeRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=FINAL_EPOCH if closes else self.epoch,
            is_renew_ack=any(batch.renews for batches in acknowledgements.values() for batch in batches),
            topics=list(topics.values()),
        )

    def answered(self, code: int) -> None:
        """A response came, with this error code."""
        if code in SESSION_ERRORS:
            self.lost()
        else:
            self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1

    def lost(self) -> None:
        """No response came, or the broker does not know the session: the next request opens a new one."""
        self.epoch = INITIAL_EPOCH
        self.partitions = {}


def plain(batches: Iterable[AckBatch]) -> Iterator[dict[str, Any]]:
    """The fields of a batch in a request."""
    for first, last, types in batches:
        yield {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)}


def by_topic_id(places: Iterable[Place]) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = {}
    for topic_id, index in places:
        found.setdefault(topic_id, []).append(index)
    return found
