"""Produce requests out of batches, and what their responses say of each batch.

In: encoded batches with their partitions. Out: a request in the shape of a version; results by partition.
Does not know: connections, when to send, how batches are encoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from barnabas.client.core.topology import Topic, TopicPartition
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse

TOPIC_IDS_SINCE = 13  # version of Produce
TRANSACTION_VERSION_MAX = 11  # later versions add partitions to transactions by themselves
WRITTEN = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})
TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})

PartitionResult = ProduceResponse.TopicProduceResponse.PartitionProduceResponse


def produce_request(
    batches: Iterable[tuple[TopicPartition, bytes | bytearray | memoryview]],
    topics: Mapping[str, Topic],
    version: int,
    *,
    acks: int,
    timeout_ms: int,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """One batch of each partition; `topics` must know all of them when the version names topics by id."""
    data: dict[str, ProduceRequest.TopicProduceData] = {}
    for topic_partition, records in batches:
        topic = data.get(topic_partition.topic)
        if topic is None:
            topic = data[topic_partition.topic] = ProduceRequest.TopicProduceData(name=topic_partition.topic)
            if version >= TOPIC_IDS_SINCE:
                topic.topic_id = topics[topic_partition.topic].topic_id
        topic.partition_data.append(
            topic.PartitionProduceData(index=topic_partition.partition, records=records)
        )
    request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=list(data.values()))
    if transactional_id is not None:
        request.transactional_id = transactional_id
    return request


def produce_results(
    response: ProduceResponse, names: Mapping[bytes, str]
) -> Iterator[tuple[TopicPartition, PartitionResult]]:
    """The result of each partition; `names` are those of topic ids."""
    for topic in response.responses:
        name = topic.name or names.get(topic.topic_id, "")
        for each in topic.partition_responses:
            yield TopicPartition(name, each.index), each
