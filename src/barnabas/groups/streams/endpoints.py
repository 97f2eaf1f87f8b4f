"""Endpoints for interactive queries: which partitions the member at each endpoint has.

In: a group and metadata. Out: parts of a heartbeat's response.
Does not know: when a member needs them.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.groups.streams.configuring import ConfiguredSubtopology
from barnabas.groups.streams.group import StreamsGroup
from barnabas.groups.streams.member import Endpoint, StreamsMember
from barnabas.groups.streams.tasks import TaskSets
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse as Response

EndpointToPartitions = Response.EndpointToPartitions
Subtopologies = Mapping[str, ConfiguredSubtopology]


def endpoints(group: StreamsGroup, member: StreamsMember, image: MetadataImage) -> list[EndpointToPartitions]:
    """The endpoints of all members; `member` comes last, as it is after its heartbeat."""
    subtopologies: Subtopologies = (group.configured.subtopologies if group.configured else None) or {}
    others = (each for each in group.members.values() if each.member_id != member.member_id)
    return [
        of_member(each, each.endpoint, subtopologies, image)
        for each in (*others, member)
        if each.endpoint is not None
    ]


def of_member(
    member: StreamsMember, endpoint: Endpoint, subtopologies: Subtopologies, image: MetadataImage
) -> EndpointToPartitions:
    active = {name: frozenset(numbers) for name, numbers in member.assigned.active.items()}
    return EndpointToPartitions(
        user_endpoint=Response.Endpoint(host=endpoint.host, port=endpoint.port),
        active_partitions=partitions(active, subtopologies, image),
        standby_partitions=partitions(member.assigned.standby, subtopologies, image),
    )


def partitions(
    tasks: TaskSets, subtopologies: Subtopologies, image: MetadataImage
) -> list[Response.TopicPartition]:
    """The partitions of source topics that belong to tasks. A topic with fewer partitions than there are
    tasks shows its first ones, as in Apache Kafka."""
    found = []
    by_name = image.topics.by_name
    for name, numbers in tasks.items():
        subtopology = subtopologies.get(name)
        if subtopology is None:
            continue
        for topic in sorted({*subtopology.source_topics, *subtopology.repartition_sources}):
            if topic in by_name:
                shown = sorted(numbers)[: len(by_name[topic].partitions)]
                found.append(Response.TopicPartition(topic=topic, partitions=shown))
    return found
