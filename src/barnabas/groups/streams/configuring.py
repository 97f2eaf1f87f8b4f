"""A topology configured for the topics that exist: tasks, and internal topics with their partitions.

In: a topology and metadata. Out: a `ConfiguredTopology`: ready, or with the problem that members are told and
the internal topics that the broker creates.
Does not know: groups, how topics are created.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from barnabas.groups.streams.assignor import SubtopologySpec
from barnabas.groups.streams.java_order import hash_order
from barnabas.groups.streams.partition_counts import (
    PartitionCounts,
    Status,
    TopicProblem,
    task_count,
    unexpected,
)
from barnabas.groups.streams.topology import StreamsTopology, Subtopology
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps
from barnabas.protocol.log_records.consumer_offsets import StreamsGroupTopologyValue

SHOWN_MAX = 3  # topics that a message names


@dataclass(frozen=True, slots=True)
class InternalTopic:
    name: str
    partition_count: int
    replication_factor: int  # 0: the broker's default
    configs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    task_count: int
    source_topics: frozenset[str]
    repartition_sources: Mapping[str, InternalTopic]
    repartition_sinks: frozenset[str]
    changelogs: Mapping[str, InternalTopic]


@dataclass(frozen=True)
class ConfiguredTopology:
    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None  # sorted by id; None: they cannot be configured
    missing: Mapping[str, InternalTopic] = field(default_factory=dict)  # internal topics to be created
    problem: TopicProblem | None = None

    @property
    def is_ready(self) -> bool:
        return self.problem is None

    @cached_property
    def specs(self) -> list[SubtopologySpec]:
        """The subtopologies as the assignor takes them."""
        return [
            SubtopologySpec(name, each.task_count, bool(each.changelogs))
            for name, each in (self.subtopologies or {}).items()
        ]

    @cached_property
    def task_count(self) -> int:
        return sum(spec.task_count for spec in self.specs)


def configure(topology: StreamsTopology, image: MetadataImage) -> Steps[ConfiguredTopology]:
    """In steps, because a topology may have thousands of topics."""
    by_name = image.topics.by_name
    existing = {name: len(by_name[name].partitions) for name in all_topics(topology) if name in by_name}
    try:
        check_sources(topology, existing)
        counts = PartitionCounts(topology, existing)
        decided = yield from counts.decide()
        subtopologies = {}
        for name in sorted(topology.subtopologies):
            subtopologies[name] = configured(topology.subtopologies[name], counts, decided)
            yield
        missing = missing_topics(subtopologies, topology, existing)
    except TopicProblem as problem:
        return ConfiguredTopology(topology.epoch, None, problem=problem)
    problem_found = None
    if missing:
        detail = f"Internal topics are missing: {summary(missing)}"
        problem_found = TopicProblem(Status.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, subtopologies, missing, problem_found)


def all_topics(topology: StreamsTopology) -> set[str]:
    found = set(topology.required_topics)
    for subtopology in topology.subtopologies.values():
        found.update(subtopology.repartition_sink_topics)
    return found


def check_sources(topology: StreamsTopology, existing: Mapping[str, int]) -> None:
    missing = {
        name
        for subtopology in topology.subtopologies.values()
        for name in subtopology.source_topics
        if name not in existing
    }
    if missing:
        detail = f"Source topics {summary(sorted(missing))} are missing."
        raise TopicProblem(Status.MISSING_SOURCE_TOPICS, detail)


def configured(
    subtopology: Subtopology, counts: PartitionCounts, decided: Mapping[str, int]
) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        task_count(subtopology, counts),
        frozenset(subtopology.source_topics),
        internal_topics(subtopology.repartition_source_topics, decided),
        frozenset(subtopology.repartition_sink_topics),
        internal_topics(subtopology.state_changelog_topics, decided),
    )


def internal_topics(
    topics: Iterable[StreamsGroupTopologyValue.TopicInfo], decided: Mapping[str, int]
) -> dict[str, InternalTopic]:
    found: dict[str, InternalTopic] = {}
    for topic in topics:
        count = topic.partitions or decided[topic.name]
        if count < 1 or topic.name in found:
            raise unexpected()
        configs = tuple((config.key, config.value) for config in topic.topic_configs)
        found[topic.name] = InternalTopic(topic.name, count, topic.replication_factor, configs)
    return found


def missing_topics(
    subtopologies: Mapping[str, ConfiguredSubtopology], topology: StreamsTopology, existing: Mapping[str, int]
) -> dict[str, InternalTopic]:
    needed: dict[str, InternalTopic] = {}
    for subtopology in subtopologies.values():
        needed.update(subtopology.repartition_sources)
        needed.update(subtopology.changelogs)
    needed = {name: needed[name] for name in hash_order(needed)}  # the order in which members are told
    for name in sorted(topology.required_topics):
        topic = needed.get(name)
        if topic is None or name not in existing:
            continue
        if existing[name] != topic.partition_count:
            raise TopicProblem(
                Status.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected "
                f"{topic.partition_count}, found {existing[name]}",
            )
        del needed[name]
    return needed


def summary(topics: Iterable[str]) -> str:
    names = list(topics)
    shown = ", ".join(names[:SHOWN_MAX])
    more = len(names) - SHOWN_MAX
    return f"{shown} and {more} additional topics" if more > 0 else shown
