"""Fetch requests out of positions, and records out of their responses.

In: partitions with the offset to read from. Out: a request in the shape of a version; the data of each
partition; records from a position on without markers and aborted transactions, and the position after them.
Does not know: connections, leaders, sessions, what happens to the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from barnabas.client.core.errors import check
from barnabas.client.core.topology import Topic, TopicPartition, by_topic
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.records.batch import TimestampType, headers, validate
from barnabas.records.control import read_end_marker
from barnabas.records.record import Headers, iter_records

TOPIC_IDS_SINCE = 13  # versions of Fetch
REPLICA_STATE_SINCE = 15
NO_SESSION_EPOCH = -1
NO_EPOCH = -1
CONSUMER = -1
FETCH = "fetch"  # fetches wait at the broker: they have connections of their own

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData


def fetch_request(
    positions: Mapping[TopicPartition, int],
    topics: Mapping[str, Topic],
    version: int,
    *,
    wait_ms_max: int,
    bytes_max: int,
    partition_bytes_max: int,
    bytes_min: int = 1,
    read_committed: bool = False,
    rack: str = "",
    replica_id: int = CONSUMER,
) -> FetchRequest:
    """A fetch from a leader names the leader epoch. A broker that led the partition once and follows it now,
    perhaps with an empty log, then refuses the fetch. Without the epoch it would read its own log."""
    asked = []
    for name, some in by_topic(positions).items():
        topic = FetchRequest.FetchTopic(
            partitions=[
                FetchRequest.FetchTopic.FetchPartition(
                    partition=topic_partition.partition,
                    current_leader_epoch=epoch_of(topics.get(name), topic_partition.partition)
                    if replica_id == CONSUMER
                    else NO_EPOCH,
                    fetch_offset=positions[topic_partition],
                    partition_max_bytes=partition_bytes_max,
                )
                for topic_partition in some
            ]
        )
        if version < TOPIC_IDS_SINCE:
            topic.topic = name
        elif name in topics:
            topic.topic_id = topics[name].topic_id
        asked.append(topic)
    request = FetchRequest(
        max_wait_ms=wait_ms_max,
        min_bytes=bytes_min,
        max_bytes=bytes_max,
        isolation_level=int(read_committed),
        session_epoch=NO_SESSION_EPOCH,
        rack_id=rack,
        topics=asked,
    )
    if replica_id != CONSUMER and version >= REPLICA_STATE_SINCE:
        request.replica_state = FetchRequest.ReplicaState(replica_id=replica_id)
    elif replica_id != CONSUMER:
        request.replica_id = replica_id
    return request


def epoch_of(topic: Topic | None, partition: int) -> int:
    known = topic.partitions.get(partition) if topic is not None else None
    return known.leader_epoch if known is not None else NO_EPOCH


def fetched_partitions(
    response: FetchResponse, names: Mapping[bytes, str]
) -> list[tuple[TopicPartition, PartitionData]]:
    """The data of each partition, or the error of the whole response; `names` are those of topic ids."""
    check(response.error_code)
    return [
        (TopicPartition(topic.topic or names.get(topic.topic_id, ""), each.partition_index), each)
        for topic in response.responses
        for each in topic.partitions
    ]


class Aborted:
    """Finds batches that belong to aborted transactions; ask in the order of offsets."""

    def __init__(self, transactions: Iterable[tuple[int, int]]) -> None:
        """Each with its first offset and its producer id."""
        self._coming = sorted(transactions, reverse=True)
        self._open: set[int] = set()

    def has(self, producer_id: int, last_offset: int) -> bool:
        self._open_up_to(last_offset)
        return producer_id in self._open

    def ends(self, producer_id: int, offset: int) -> None:
        """Close the transaction of this producer: its abort marker is at `offset`.

        Its records may all be before the position that was fetched from. It is opened first then, or it
        would hide the producer's next transaction.
        """
        self._open_up_to(offset)
        self._open.discard(producer_id)

    def _open_up_to(self, offset: int) -> None:
        while self._coming and self._coming[-1][0] <= offset:
            self._open.add(self._coming.pop()[1])


def aborted_in(data: PartitionData) -> Aborted:
    """The transactions that a fetch response says were aborted."""
    return Aborted((each.first_offset, each.producer_id) for each in data.aborted_transactions or ())


class ConsumerRecord(NamedTuple):
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: Headers


class DamagedBatch(KafkaError):
    """A batch that cannot be read; `next_offset` is where one may go on behind it."""

    def __init__(
        self, partition: TopicPartition, base_offset: int, next_offset: int, cause: KafkaError
    ) -> None:
        text = f"offsets {base_offset} to {next_offset - 1} of {partition} cannot be read: {cause.message}"
        super().__init__(cause.code, text)
        self.where = partition
        self.next_offset = next_offset


def read_partition(
    partition: TopicPartition, data: PartitionData, position: int, *, read_committed: bool
) -> tuple[list[ConsumerRecord], int]:
    """Records at or behind `position` that a consumer should see, and the position to fetch from next."""
    found: list[ConsumerRecord] = []
    try:
        for records, next_offset in read_batches(partition, data, position, read_committed=read_committed):
            found += records
            position = next_offset
    except DamagedBatch:
        if not found:
            raise
        # The error comes again, first, with the next fetch.
    return found, position


def read_batches(
    topic_partition: TopicPartition, data: PartitionData, position: int, *, read_committed: bool
) -> Iterator[tuple[list[ConsumerRecord], int]]:
    """The same, batch by batch: records that a consumer should see, maybe none, and the position behind."""
    if not data.records:
        return
    buffer = data.records
    aborted = aborted_in(data) if read_committed else None
    for start, header in headers(buffer):
        if header.last_offset < position:
            continue
        found: list[ConsumerRecord] = []
        try:
            validate(buffer, start)
            if aborted is not None and header.is_control:
                marker = read_end_marker(buffer, position=start)
                if marker is not None and marker.aborted:
                    aborted.ends(header.producer_id, header.last_offset)
            hidden = (
                aborted is not None
                and header.is_transactional
                and aborted.has(header.producer_id, header.last_offset)
            )
            if not header.is_control and not hidden:
                new, (topic, partition) = tuple.__new__, topic_partition
                epoch, kind = header.partition_leader_epoch, header.timestamp_type
                found = [
                    new(ConsumerRecord, (topic, partition, offset, epoch, timestamp, kind, key, value, some))
                    for offset, timestamp, key, value, some in iter_records(buffer, position=start)
                    if offset >= position
                ]
        except KafkaError as error:
            raise DamagedBatch(topic_partition, header.base_offset, header.next_offset, error) from error
        position = header.next_offset
        yield found, position
