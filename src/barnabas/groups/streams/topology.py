"""The topology of a streams group: its subtopologies with the topics that they read and write.

In: the topology of a heartbeat, or the record of it. Out: lookups by topic. Equal topologies compare equal.
Does not know: which topics exist (see `configuring`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.log_records.consumer_offsets import StreamsGroupTopologyValue as Value
from barnabas.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest as Request

Subtopology = Value.Subtopology


@dataclass(frozen=True, slots=True)
class StreamsTopology:
    epoch: int
    subtopologies: dict[str, Subtopology]
    sources: dict[str, str] = field(compare=False)  # source topic -> subtopology that reads it
    required_topics: frozenset[str] = field(compare=False)  # without those that are only written to


def from_value(value: Value) -> StreamsTopology:
    subtopologies = {each.subtopology_id: each for each in value.subtopologies}
    sources: dict[str, str] = {}
    required: set[str] = set()
    for subtopology in subtopologies.values():
        for name in read_by(subtopology):
            sources[name] = subtopology.subtopology_id
            required.add(name)
        required.update(topic.name for topic in subtopology.state_changelog_topics)
    return StreamsTopology(value.epoch, subtopologies, sources, frozenset(required))


def read_by(subtopology: Subtopology) -> Iterable[str]:
    yield from subtopology.source_topics
    for topic in subtopology.repartition_source_topics:
        yield topic.name


def to_value(topology: Request.Topology) -> Value:
    """The record of a topology that a member sent."""
    if topology.epoch < 0 or len({each.subtopology_id for each in topology.subtopologies}) != len(
        topology.subtopologies
    ):
        # Apache Kafka fails with an unexpected error, and has no message for it.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Value(
        epoch=topology.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=each.subtopology_id,
                source_topics=each.source_topics,
                source_topic_regex=each.source_topic_regex,
                state_changelog_topics=topic_infos(each.state_changelog_topics),
                repartition_sink_topics=each.repartition_sink_topics,
                repartition_source_topics=topic_infos(each.repartition_source_topics),
                copartition_groups=[
                    Subtopology.CopartitionGroup(
                        source_topics=group.source_topics,
                        source_topic_regex=group.source_topic_regex,
                        repartition_source_topics=group.repartition_source_topics,
                    )
                    for group in each.copartition_groups
                ],
            )
            for each in topology.subtopologies
        ],
    )


def topic_infos(topics: list[Request.TopicInfo]) -> list[Value.TopicInfo]:
    return [
        Value.TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[
                Value.TopicConfig(key=config.key, value=config.value) for config in topic.topic_configs
            ],
        )
        for topic in topics
    ]
