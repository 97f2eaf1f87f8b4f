"""Streams groups as StreamsGroupDescribe and ListGroups show them.

In: a group. Out: parts of responses.
Does not know: authorization.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.groups.streams.configuring import ConfiguredSubtopology, InternalTopic
from barnabas.groups.streams.group import StreamsGroup
from barnabas.groups.streams.member import StreamsMember
from barnabas.groups.streams.topology import StreamsTopology, Subtopology
from barnabas.protocol import ErrorCode
from barnabas.protocol.log_records.consumer_offsets import StreamsGroupTopologyValue
from barnabas.protocol.messages.list_groups import ListGroupsResponse
from barnabas.protocol.messages.streams_group_describe import StreamsGroupDescribeResponse as Response

GROUP_TYPE = "streams"
PROTOCOL_TYPE = "streams"

DescribedGroup = Response.DescribedGroup
DescribedTopology = DescribedGroup.Topology
DescribedSubtopology = DescribedTopology.Subtopology


def described(group: StreamsGroup) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=described_topology(group),
        members=[described_member(group, member) for member in group.members.values()],
    )


def described_topology(group: StreamsGroup) -> DescribedTopology | None:
    """The topology with the partition counts that were decided, or as members sent it."""
    configured = group.configured
    if configured is not None and configured.is_ready and configured.subtopologies is not None:
        return DescribedTopology(
            epoch=configured.epoch,
            subtopologies=[of_configured(name, each) for name, each in configured.subtopologies.items()],
        )
    return None if group.topology is None else of_topology(group.topology)


def of_configured(name: str, subtopology: ConfiguredSubtopology) -> DescribedSubtopology:
    def infos(topics: Mapping[str, InternalTopic]) -> list[Response.TopicInfo]:
        return [
            Response.TopicInfo(
                name=topic,
                partitions=topics[topic].partition_count,
                replication_factor=topics[topic].replication_factor,
                topic_configs=configs(topics[topic].configs),
            )
            for topic in sorted(topics)
        ]

    return DescribedSubtopology(
        subtopology_id=name,
        source_topics=sorted(subtopology.source_topics),
        repartition_sink_topics=sorted(subtopology.repartition_sinks),
        state_changelog_topics=infos(subtopology.changelogs),
        repartition_source_topics=infos(subtopology.repartition_sources),
    )


def of_topology(topology: StreamsTopology) -> DescribedTopology:
    def infos(topics: list[StreamsGroupTopologyValue.TopicInfo]) -> list[Response.TopicInfo]:
        return [
            Response.TopicInfo(
                name=topic.name,
                partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                topic_configs=configs((config.key, config.value) for config in topic.topic_configs),
            )
            for topic in sorted(topics, key=lambda topic: topic.name)
        ]

    def described_subtopology(each: Subtopology) -> DescribedSubtopology:
        return DescribedSubtopology(
            subtopology_id=each.subtopology_id,
            source_topics=sorted(each.source_topics),
            repartition_sink_topics=sorted(each.repartition_sink_topics),
            state_changelog_topics=infos(each.state_changelog_topics),
            repartition_source_topics=infos(each.repartition_source_topics),
        )

    subtopologies = topology.subtopologies
    return DescribedTopology(
        epoch=topology.epoch,
        subtopologies=[described_subtopology(subtopologies[name]) for name in sorted(subtopologies)],
    )


def configs(pairs: Iterable[tuple[str, str]]) -> list[Response.KeyValue]:
    return [Response.KeyValue(key=key, value=value) for key, value in pairs]


def described_member(group: StreamsGroup, member: StreamsMember) -> DescribedGroup.Member:
    endpoint, tasks = member.endpoint, group.target_of(member.member_id)
    held = member.assigned
    return DescribedGroup.Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Response.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=configs(member.client_tags),
        assignment=Response.Assignment(
            active_tasks=task_ids(held.active),
            standby_tasks=task_ids(held.standby),
            warmup_tasks=task_ids(held.warmup),
        ),
        target_assignment=Response.Assignment(
            active_tasks=task_ids(tasks.active),
            standby_tasks=task_ids(tasks.standby),
            warmup_tasks=task_ids(tasks.warmup),
        ),
    )


def task_ids(tasks: Mapping[str, Iterable[int]]) -> list[Response.TaskIds]:
    return [Response.TaskIds(subtopology_id=name, partitions=sorted(tasks[name])) for name in sorted(tasks)]


def not_found(group_id: str, is_other_kind: bool) -> DescribedGroup:
    message = f"Group {group_id} is not a streams group." if is_other_kind else f"Group {group_id} not found."
    return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=message)


def listed(group: StreamsGroup) -> ListGroupsResponse.ListedGroup:
    return ListGroupsResponse.ListedGroup(
        group_id=group.group_id,
        protocol_type=PROTOCOL_TYPE,
        group_state=group.state,
        group_type=GROUP_TYPE,
    )
