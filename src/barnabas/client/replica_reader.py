"""Reading replicas where they are: batches of partitions from one broker, whether it leads them or not.

In: a Cluster, a broker, a position for each partition. Out: the high watermark and the batches that the
broker has from there on, as offsets and checksums. It reads as a debugging consumer: every
replica responds to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import error_of
from barnabas.client.core.fetching import fetch_request, fetched_partitions
from barnabas.client.core.topology import Node, TopicPartition
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.records.batch import headers

DEBUGGING_CONSUMER = -2
RESPONSE_BYTES_MAX = 2**31 - 1


class BatchMark(NamedTuple):
    last_offset: int
    checksum: int


@dataclass(frozen=True, slots=True)
class ReplicaBatches:
    high_watermark: int
    batches: tuple[BatchMark, ...]


async def read_replicas(
    cluster: ClusterCore,
    node: Node,
    positions: Mapping[TopicPartition, int],
    *,
    max_wait_ms: int,
    partition_bytes_max: int,
) -> dict[TopicPartition, ReplicaBatches | KafkaError]:
    """The data of one broker for some partitions."""
    connection = await cluster.connection_to(node.address, "replicas")
    version = connection.version_for(FetchRequest)
    request = fetch_request(
        positions,
        cluster.topology.topics,
        version,
        wait_ms_max=max_wait_ms,
        bytes_max=RESPONSE_BYTES_MAX,
        partition_bytes_max=partition_bytes_max,
        replica_id=DEBUGGING_CONSUMER,
    )
    timeout_ms = cluster.request_timeout_ms + max_wait_ms
    response = await connection.send(request, FetchResponse, version=version, timeout_ms=timeout_ms)
    return {
        topic_partition: (
            error_of(each.error_code)
            if each.error_code
            else ReplicaBatches(each.high_watermark, marks_of(each.records))
        )
        for topic_partition, each in fetched_partitions(response, cluster.topology.topic_names())
    }


def marks_of(records: bytes | memoryview | None) -> tuple[BatchMark, ...]:
    if not records:
        return ()
    return tuple(BatchMark(header.last_offset, header.crc) for _, header in headers(records))
