"""Reading replicas where they are: batches of partitions from one broker, whether it leads them or not.

In: a Cluster, a broker, a position for each partition. Out: the high watermark and the batches that the
broker has from there on, as offsets and checksums. It reads as a debugging consumer, whom every replica
answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.client.cluster import Cluster, check, error_of
from barnabas.client.topology import Node, TopicPartition
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.records.batch import headers

DEBUGGING_CONSUMER = -2
REPLICA_STATE_SINCE = 15  # versions of Fetch
TOPIC_IDS_SINCE = 13
RESPONSE_BYTES_MAX = 2**31 - 1


class BatchMark(NamedTuple):
    last_offset: int
    checksum: int


@dataclass(frozen=True, slots=True)
class ReplicaBatches:
    high_watermark: int
    batches: tuple[BatchMark, ...]


async def read_replicas(
    cluster: Cluster,
    node: Node,
    positions: Mapping[TopicPartition, int],
    *,
    max_wait_ms: int,
    partition_bytes_max: int,
) -> dict[TopicPartition, ReplicaBatches | KafkaError]:
    """What one broker has of some partitions."""
    connection = await cluster.connection_to(node.address, "replicas")
    version = connection.version_for(FetchRequest)
    ids = {name: topic.topic_id for name, topic in cluster.topology.topics.items()}
    names = {topic_id: name for name, topic_id in ids.items()}
    topics: dict[str, list[FetchRequest.FetchTopic.FetchPartition]] = {}
    for where, offset in positions.items():
        asked = FetchRequest.FetchTopic.FetchPartition(
            partition=where.partition, fetch_offset=offset, partition_max_bytes=partition_bytes_max
        )
        topics.setdefault(where.topic, []).append(asked)
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=RESPONSE_BYTES_MAX,
        topics=[
            FetchRequest.FetchTopic(topic_id=ids[name], partitions=asked)
            if version >= TOPIC_IDS_SINCE
            else FetchRequest.FetchTopic(topic=name, partitions=asked)
            for name, asked in topics.items()
        ],
    )
    if version >= REPLICA_STATE_SINCE:
        request.replica_state = FetchRequest.ReplicaState(replica_id=DEBUGGING_CONSUMER)
    else:
        request.replica_id = DEBUGGING_CONSUMER
    timeout_ms = cluster.request_timeout_ms + max_wait_ms
    answer = await connection.send(request, FetchResponse, version=version, timeout_ms=timeout_ms)
    check(answer.error_code)
    return {
        TopicPartition(topic.topic or names[topic.topic_id], each.partition_index): (
            error_of(each.error_code)
            if each.error_code
            else ReplicaBatches(each.high_watermark, marks_of(each.records))
        )
        for topic in answer.responses
        for each in topic.partitions
    }


def marks_of(records: bytes | memoryview | None) -> tuple[BatchMark, ...]:
    if not records:
        return ()
    return tuple(BatchMark(header.last_offset, header.crc) for _, header in headers(records))
