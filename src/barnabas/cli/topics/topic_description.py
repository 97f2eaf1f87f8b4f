"""The lines that `topics --describe` prints: one for a topic, one for each of its partitions.

In: descriptions from brokers. Out: lines in Kafka's columns. Does not know: requests.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from barnabas.client.admin.configs import ConfigEntry
from barnabas.client.admin.topics import PartitionDescription, Reassignment, TopicDescription
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import NULL_UUID, uuid

NOT_AVAILABLE = "N/A"


class TopicConfig:
    def __init__(self, entries: Sequence[ConfigEntry]) -> None:
        self.overrides = [each for each in entries if not each.is_default]
        self._values = {each.name: each.value for each in entries}

    def text(self) -> str:
        return ",".join(f"{each.name}={each.value}" for each in self.overrides)

    @property
    def min_insync_replicas(self) -> int:
        return int(self._values.get("min.insync.replicas") or 1)


@dataclass(frozen=True, slots=True)
class Report:
    """Selects the partitions to show: all, or those that meet a condition."""

    under_replicated: bool = False
    unavailable: bool = False
    under_min_isr: bool = False
    at_min_isr: bool = False
    overrides_only: bool = False
    live_brokers: frozenset[int] = frozenset()

    @property
    def is_partial(self) -> bool:
        return self.under_replicated or self.unavailable or self.under_min_isr or self.at_min_isr

    def shows(self, partition: PartitionDescription, reassignment: Reassignment | None, min_isr: int) -> bool:
        isr = len(partition.isr)
        return (
            not self.is_partial
            or (self.under_replicated and replication_factor(partition, reassignment) > isr)
            or (self.unavailable and partition.leader not in self.live_brokers)
            or (self.under_min_isr and (partition.leader is None or isr < min_isr))
            or (self.at_min_isr and isr == min_isr)
        )


def describe(
    topic: TopicDescription,
    config: TopicConfig,
    reassignments: Mapping[TopicPartition, Reassignment],
    report: Report,
) -> Iterator[str]:
    """The lines for one topic."""

    def moving(partition: PartitionDescription) -> Reassignment | None:
        return reassignments.get(TopicPartition(topic.name, partition.index))

    if not report.is_partial and (config.overrides or not report.overrides_only) and topic.partitions:
        first = topic.partitions[0]
        yield topic_line(topic, config, replication_factor(first, moving(first)))
    if not report.overrides_only:
        for partition in topic.partitions:
            if report.shows(partition, moving(partition), config.min_insync_replicas):
                yield partition_line(topic.name, partition, moving(partition))


def topic_line(topic: TopicDescription, config: TopicConfig, factor: int) -> str:
    parts = [f"Topic: {topic.name}"]
    if topic.topic_id != NULL_UUID:
        parts.append(f"TopicId: {uuid.to_text(topic.topic_id)}")
    parts.append(f"PartitionCount: {len(topic.partitions)}")
    parts.append(f"ReplicationFactor: {factor}")
    parts.append(f"Configs: {config.text()}")
    return "\t".join(parts)


def partition_line(topic: str, partition: PartitionDescription, reassignment: Reassignment | None) -> str:
    parts = [
        "",
        f"Topic: {topic}",
        f"Partition: {partition.index}",
        f"Leader: {'none' if partition.leader is None else partition.leader}",
        f"Replicas: {ids(partition.replicas)}",
        f"Isr: {ids(partition.isr)}",
    ]
    if reassignment is not None:
        parts.append(f"Adding Replicas: {ids(reassignment.adding)}")
        parts.append(f"Removing Replicas: {ids(reassignment.removing)}")
    parts.append(f"Elr: {ids(partition.elr)}")
    parts.append(f"LastKnownElr: {ids(partition.last_known_elr)}")
    return "\t".join(parts)


def ids(brokers: tuple[int, ...] | None) -> str:
    return NOT_AVAILABLE if brokers is None else ",".join(map(str, brokers))


def replication_factor(partition: PartitionDescription, reassignment: Reassignment | None) -> int:
    """The number of replicas without those that a reassignment is still adding."""
    if reassignment is not None and {*reassignment.adding, *reassignment.removing} & {*partition.replicas}:
        return len(reassignment.replicas) - len(reassignment.adding)
    return len(partition.replicas)
