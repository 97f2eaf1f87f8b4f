"""Decides how many partitions the internal topics of a topology need.

In: a topology, and the partition counts of existing topics. Out: counts by internal topic. A repartition
topic has the count that the application fixed, or the largest of what its writers read; copartitioned topics
get the same count; a changelog topic has one partition for each task of its subtopology.
Raises `TopicProblem` if existing topics do not fit together, KafkaError if no topics would make it work.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from barnabas.groups.streams.topology import StreamsTopology, Subtopology, read_by
from barnabas.protocol import ErrorCode, KafkaError


class Status(IntEnum):
    """Statuses in the response to a heartbeat."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class TopicProblem(Exception):
    """Why the topology cannot run with the topics that exist."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class PartitionCounts:
    """The counts of existing topics and those that were decided."""

    def __init__(self, topology: StreamsTopology, existing: Mapping[str, int]) -> None:
        self._topology = topology
        self._existing = existing
        self.decided: dict[str, int] = {}

    def decide(self) -> dict[str, int]:
        self.decided.update(self._repartition_counts())
        self._enforce_copartitioning()
        self._decide_changelogs()
        return self.decided

    def of(self, topic: str) -> int:
        """The count of a topic; that of an existing one comes first."""
        found = self._existing.get(topic, self.decided.get(topic))
        if found is None:
            raise unexpected()
        return found

    # Repartition topics

    def _repartition_counts(self) -> dict[str, int]:
        subtopologies = self._topology.subtopologies.values()
        counts = {
            topic.name: topic.partitions
            for subtopology in subtopologies
            for topic in subtopology.repartition_source_topics
            if topic.partitions
        }
        is_complete = False
        while not is_complete:
            is_complete = True
            has_progress = False
            for subtopology in subtopologies:
                for sink in subtopology.repartition_sink_topics:
                    if sink in counts:
                        continue
                    count = self._largest_source(subtopology, counts)
                    if count is None:
                        is_complete = False
                    else:
                        counts[sink] = count
                        has_progress = True
            if not is_complete and not has_progress:
                raise KafkaError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    "Failed to compute number of partitions for all repartition topics. There may be loops "
                    "in the topology that cannot be resolved.",
                )
        for subtopology in subtopologies:
            if any(topic.name not in counts for topic in subtopology.repartition_source_topics):
                raise KafkaError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    "Failed to compute number of partitions for all repartition topics, because a "
                    "repartition source topic is never used as a sink topic.",
                )
        return counts

    def _largest_source(self, subtopology: Subtopology, counts: Mapping[str, int]) -> int | None:
        found = [
            counts[topic.name] for topic in subtopology.repartition_source_topics if topic.name in counts
        ]
        found += [self._existing[name] for name in subtopology.source_topics if name in self._existing]
        return max(found, default=None)

    # Copartitioned topics

    def _enforce_copartitioning(self) -> None:
        fixed: dict[str, None] = {}
        flexible: set[str] = set()
        for subtopology in self._topology.subtopologies.values():
            for topic in subtopology.repartition_source_topics:
                if topic.partitions:
                    fixed[topic.name] = None
                else:
                    flexible.add(topic.name)
        for subtopology in self._topology.subtopologies.values():
            for topics in copartitioned(subtopology):
                if topics:
                    self._enforce(topics, fixed, flexible)

    def _enforce(self, topics: set[str], fixed: Mapping[str, None], flexible: set[str]) -> None:
        internal = {name: self.of(name) for name in sorted(topics) if name in fixed or name in flexible}
        external = {name: self.of(name) for name in sorted(topics) if name not in internal}
        if external:
            count = same_count(external, external)
        elif fixed:
            count = same_count({name: self.of(name) for name in fixed}, internal)
        else:
            count = max(internal.values())
        for name, own in internal.items():
            if name in fixed and own != count:
                raise TopicProblem(
                    Status.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Number of partitions [{own}] of repartition topic [{name}] doesn't match number of "
                    f"partitions [{count}] of the source topic.",
                )
            self.decided[name] = count

    # Changelog topics

    def _decide_changelogs(self) -> None:
        found = {}
        for subtopology in self._topology.subtopologies.values():
            count = task_count(subtopology, self)
            for topic in subtopology.state_changelog_topics:
                found[topic.name] = count
        self.decided.update(found)


def task_count(subtopology: Subtopology, counts: PartitionCounts) -> int:
    """The number of tasks of a subtopology: the partitions of the largest topic that it reads."""
    found = max((counts.of(name) for name in read_by(subtopology)), default=None)
    if found is None:
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"No source topics found for subtopology {subtopology.subtopology_id}",
        )
    return found


def copartitioned(subtopology: Subtopology) -> list[set[str]]:
    """The names of the topics that must have equal partition counts, group by group."""
    try:
        return [
            {subtopology.source_topics[position] for position in indexes(group.source_topics)}
            | {
                subtopology.repartition_source_topics[position].name
                for position in indexes(group.repartition_source_topics)
            }
            for group in subtopology.copartition_groups
        ]
    except IndexError:
        raise unexpected() from None


def indexes(positions: list[int]) -> list[int]:
    """Java's lists have no negative positions."""
    if any(position < 0 for position in positions):
        raise IndexError
    return positions


def same_count(of: Mapping[str, int], shown: Mapping[str, int]) -> int:
    if len(set(of.values())) > 1:
        names = ", ".join(f"{name}={shown[name]}" for name in sorted(shown))
        raise TopicProblem(
            Status.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{names}}}]",
        )
    return next(iter(of.values()))


def unexpected() -> KafkaError:
    """Apache Kafka fails with an unexpected error, and has no message for it."""
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
