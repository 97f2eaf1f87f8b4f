"""Records out of a ShareFetch response: those that were acquired, with their delivery counts.

In: the data of one partition. Out: the acquired records, and the offsets among the acquired ones that hold no
record. A batch that cannot be read is named; its acquired offsets should be rejected.
Does not know: sessions, acknowledgements, connections.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.client.core.fetching import DamagedBatch
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.share_fetch import ShareFetchResponse
from barnabas.records.batch import TimestampType, headers, validate
from barnabas.records.record import Headers, iter_records

SharePartitionData = ShareFetchResponse.ShareFetchableTopicResponse.PartitionData
AcquiredRecords = SharePartitionData.AcquiredRecords


class ShareRecord(NamedTuple):
    """A record, and how often it was delivered, this time included."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: Headers
    delivery_count: int


@dataclass(slots=True)
class Acquired:
    """The acquired part of one partition of a response."""

    records: list[ShareRecord] = field(default_factory=list)
    ranges: list[tuple[int, int]] = field(default_factory=list)  # first and last offset
    gaps: frozenset[int] = frozenset()
    unreadable: frozenset[int] = frozenset()  # of damaged batches
    damage: DamagedBatch | None = None  # the first of them


def read_acquired(topic_partition: TopicPartition, data: SharePartitionData) -> Acquired:
    """The acquired records of a partition; ranges that overlap count once."""
    found = Acquired(ranges=separate(data.acquired_records))
    counts = deliveries(data.acquired_records)
    if not counts or data.records is None:
        found.gaps = frozenset(counts)
        return found
    unreadable: set[int] = set()
    topic, partition = topic_partition
    buffer = data.records
    new, take = tuple.__new__, counts.pop
    for start, header in headers(buffer):
        if header.is_control:
            continue
        try:
            validate(buffer, start)
            epoch, kind = header.partition_leader_epoch, header.timestamp_type
            for offset, timestamp, key, value, some in iter_records(buffer, position=start):
                count = take(offset, 0)
                if count:
                    fields = (topic, partition, offset, epoch, timestamp, kind, key, value, some, count)
                    found.records.append(new(ShareRecord, fields))
        except KafkaError as error:
            damaged = range(header.base_offset, header.next_offset)
            unreadable.update(offset for offset in damaged if take(offset, 0))
            if found.damage is None:
                found.damage = DamagedBatch(topic_partition, header.base_offset, header.next_offset, error)
    found.gaps = frozenset(counts)
    found.unreadable = frozenset(unreadable)
    return found


def separate(acquired: Iterable[AcquiredRecords]) -> list[tuple[int, int]]:
    """The acquired ranges in order, each offset in one of them."""
    found: list[tuple[int, int]] = []
    for each in sorted(acquired, key=lambda part: part.first_offset):
        first = max(each.first_offset, found[-1][1] + 1) if found else each.first_offset
        if first <= each.last_offset:
            found.append((first, each.last_offset))
    return found


def deliveries(acquired: Iterable[AcquiredRecords]) -> dict[int, int]:
    """The delivery count of each acquired offset, in the order of offsets."""
    counts: dict[int, int] = {}
    for each in acquired:
        for offset in range(each.first_offset, each.last_offset + 1):
            counts.setdefault(offset, each.delivery_count)
    return counts
