"""Fetch requests out of positions, and the partitions in their responses.

In: partitions with the offset to read from. Out: a request in the shape of a version; data of each partition.
Does not know: connections, sessions, records.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.client.core.errors import check
from barnabas.client.core.topology import Topic, TopicPartition, by_topic
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse

TOPIC_IDS_SINCE = 13  # versions of Fetch
REPLICA_STATE_SINCE = 15
NO_SESSION_EPOCH = -1
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
    asked = []
    for name, some in by_topic(positions).items():
        topic = FetchRequest.FetchTopic(
            partitions=[
                FetchRequest.FetchTopic.FetchPartition(
                    partition=where.partition,
                    fetch_offset=positions[where],
                    partition_max_bytes=partition_bytes_max,
                )
                for where in some
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
