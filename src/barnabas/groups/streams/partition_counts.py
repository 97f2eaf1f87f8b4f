"""Decides how many partitions the internal topics of a topology need.

In: a topology, and the partition counts of existing topics. Out: counts by internal topic. A repartition
topic has the count that the application fixed, or the largest of what its writers read; copartitioned topics
get the same count; a changelog topic has one partition for each task of its subtopology.
Raises `TopicProblem` if existing topics do not fit together, KafkaError if no topics would make it work.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from heapq import heappop, heappush

from barnabas.groups.streams.java_order import hash_order
from barnabas.groups.streams.topology import StreamsTopology, Subtopology, read_by
from barnabas.metadata.steps import Steps
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
        order = hash_order(topology.subtopologies)  # Apache Kafka's
        self._subtopologies = [topology.subtopologies[name] for name in order]
        self._existing = existing
        self.decided: dict[str, int] = {}

    def decide(self) -> Steps[dict[str, int]]:
        self.decided.update((yield from self._repartition_counts()))
        yield from self._enforce_copartitioning()
        yield from self._decide_changelogs()
        return self.decided

    def of(self, topic: str) -> int:
        """The count of a topic; that of an existing one comes first."""
        found = self._existing.get(topic, self.decided.get(topic))
        if found is None:
            raise unexpected()
        return found

    # Repartition topics

    def _repartition_counts(self) -> Steps[dict[str, int]]:
        """Each subtopology that reads a topic of known size decides the topics that it writes. Apache Kafka
        goes through all of them again and again; here a topic that became known wakes its readers, for the
        same round if they come later, so that each is visited once in the same order."""
        subtopologies = self._subtopologies
        counts: dict[str, int] = {}
        readers: dict[str, list[int]] = {}
        for place, subtopology in enumerate(subtopologies):
            for topic in subtopology.repartition_source_topics:
                readers.setdefault(topic.name, []).append(place)
                if topic.partitions:
                    counts[topic.name] = topic.partitions
        waiting = [(0, place) for place in range(len(subtopologies))]  # rounds and places: a heap
        known: set[int] = set()
        while waiting:
            turn, place = heappop(waiting)
            count = None if place in known else self._largest_source(subtopologies[place], counts)
            if count is not None:
                known.add(place)
                for sink in subtopologies[place].repartition_sink_topics:
                    if sink not in counts:
                        counts[sink] = count
                        for reader in readers.get(sink, ()):
                            heappush(waiting, (turn if reader > place else turn + 1, reader))
            yield
        if any(sink not in counts for each in subtopologies for sink in each.repartition_sink_topics):
            raise KafkaError(
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                "Failed to compute number of partitions for all repartition topics. There may be loops in "
                "the topology that cannot be resolved.",
            )
        if any(name not in counts for name in readers):
            raise KafkaError(
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                "Failed to compute number of partitions for all repartition topics, because a repartition "
                "source topic is never used as a sink topic.",
            )
        return counts

    def _largest_source(self, subtopology: Subtopology, counts: Mapping[str, int]) -> int | None:
        found = [
            counts[topic.name] for topic in subtopology.repartition_source_topics if topic.name in counts
        ]
        found += [self._existing[name] for name in subtopology.source_topics if name in self._existing]
        return max(found, default=None)

    # Copartitioned topics

    def _enforce_copartitioning(self) -> Steps[None]:
        fixed: dict[str, int] = {}
        flexible: set[str] = set()
        for subtopology in self._subtopologies:
            for topic in subtopology.repartition_source_topics:
                if topic.partitions:
                    fixed[topic.name] = self.of(topic.name)
                else:
                    flexible.add(topic.name)
        has_one_size = len(set(fixed.values())) <= 1
        for subtopology in self._subtopologies:
            for topics in copartitioned(subtopology):
                if topics:
                    self._enforce(topics, fixed, flexible, has_one_size=has_one_size)
                yield

    def _enforce(
        self, topics: set[str], fixed: Mapping[str, int], flexible: set[str], *, has_one_size: bool
    ) -> None:
        """`has_one_size`: all topics whose size the application fixed have the same size."""
        internal = {name: self.of(name) for name in sorted(topics) if name in fixed or name in flexible}
        external = {name: self.of(name) for name in sorted(topics) if name not in internal}
        if external:
            count = next(iter(external.values()))
            if len(set(external.values())) > 1:
                raise different_counts(external)
        elif fixed:
            count = next(iter(fixed.values()))
            if not has_one_size:
                raise different_counts(internal)
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

    def _decide_changelogs(self) -> Steps[None]:
        found = {}
        for subtopology in self._subtopologies:
            count = task_count(subtopology, self)
            for topic in subtopology.state_changelog_topics:
                found[topic.name] = count
            yield
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


def different_counts(shown: Mapping[str, int]) -> TopicProblem:
    names = ", ".join(f"{name}={shown[name]}" for name in sorted(shown))
    return TopicProblem(
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        f"Following topics do not have the same number of partitions: [{{{names}}}]",
    )


def unexpected() -> KafkaError:
    """Apache Kafka fails with an unexpected error, and has no message for it."""
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
