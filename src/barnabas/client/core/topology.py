"""Knowledge of a client about a cluster: its brokers and the leader of each partition, from one response.

In: a MetadataResponse. Out: values to look up. Does not know: how the response was obtained or how old it is.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.client.core.address import Address
from barnabas.protocol import NULL_UUID, ErrorCode
from barnabas.protocol.messages.metadata import MetadataResponse

NO_LEADER = -1


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    found: dict[str, list[TopicPartition]] = {}
    for partition in partitions:
        found.setdefault(partition.topic, []).append(partition)
    return found


@dataclass(frozen=True, slots=True)
class Node:
    id: int
    host: str
    port: int
    rack: str | None = None
    fenced: bool = False

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


@dataclass(frozen=True, slots=True)
class Partition:
    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()
    error_code: int = 0


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    topic_id: bytes = NULL_UUID
    internal: bool = False
    partitions: dict[int, Partition] = field(default_factory=dict)
    error_code: int = 0

    @property
    def partition_count(self) -> int:
        return len(self.partitions)


@dataclass(frozen=True, slots=True)
class Topology:
    cluster_id: str | None = None
    controller_id: int = -1
    nodes: dict[int, Node] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)

    def leader(self, topic_partition: TopicPartition) -> Node | None:
        """The broker that leads a partition; None when the partition or its leader is not known."""
        topic = self.topics.get(topic_partition.topic)
        partition = topic.partitions.get(topic_partition.partition) if topic else None
        return self.nodes.get(partition.leader) if partition else None

    def topic_names(self) -> dict[bytes, str]:
        return {topic.topic_id: topic.name for topic in self.topics.values()}

    def merged(self, newer: "Topology") -> "Topology":
        """Brokers of the newer response, and its topics beside those it did not ask for."""
        return Topology(newer.cluster_id, newer.controller_id, newer.nodes, {**self.topics, **newer.topics})

    def without(self, topics: Iterable[str]) -> "Topology":
        gone = set(topics)
        kept = {name: topic for name, topic in self.topics.items() if name not in gone}
        return Topology(self.cluster_id, self.controller_id, self.nodes, kept)


def from_metadata(response: MetadataResponse) -> Topology:
    topics = (topic_of(each) for each in response.topics)
    return Topology(
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        nodes={
            each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in response.brokers
        },
        topics={topic.name: topic for topic in topics if topic.name},
    )


def topic_of(response: MetadataResponse.MetadataResponseTopic) -> Topic:
    partitions = {
        each.partition_index: Partition(
            each.partition_index,
            each.leader_id if each.error_code != ErrorCode.LEADER_NOT_AVAILABLE else NO_LEADER,
            each.leader_epoch,
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
            tuple(each.offline_replicas),
            each.error_code,
        )
        for each in response.partitions
    }
    return Topic(
        response.name or "", response.topic_id, response.is_internal, partitions, response.error_code
    )
