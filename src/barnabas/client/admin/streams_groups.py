"""Streams groups as an administrator sees them: topology, members, and the tasks that they run.

In: a Cluster. Out: frozen values, or the error of each group. Groups are listed and deleted with those of all
types (`groups`), and their offsets are those of any group (`group_offsets`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.client.admin.part import AdminPart
from barnabas.client.core.coordinators import Results
from barnabas.client.core.errors import error_of
from barnabas.client.core.topology import Node
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

Described = StreamsGroupDescribeResponse.DescribedGroup
TaskIds = tuple[tuple[str, tuple[int, ...]], ...]
"""Subtopologies with partitions."""


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    active: TaskIds = ()
    standby: TaskIds = ()
    warmup: TaskIds = ()


@dataclass(frozen=True, slots=True)
class StreamsMemberDescription:
    member_id: str
    process_id: str
    client_id: str
    host: str
    epoch: int
    topology_epoch: int
    assignment: TaskAssignment
    target: TaskAssignment
    is_classic: bool = False


@dataclass(frozen=True, slots=True)
class SubtopologyDescription:
    name: str
    source_topics: tuple[str, ...]
    repartition_sources: tuple[str, ...]
    changelogs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StreamsGroupDescription:
    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    topology_epoch: int
    subtopologies: tuple[SubtopologyDescription, ...]
    coordinator: Node
    members: tuple[StreamsMemberDescription, ...]


class StreamsGroupAdmin(AdminPart):
    async def describe_streams_groups(
        self, groups: Iterable[str]
    ) -> dict[str, StreamsGroupDescription | KafkaError]:
        async def question(node: Node, chosen: list[str]) -> Results[StreamsGroupDescription]:
            connection = await self.cluster.connection_to(node.address)
            request = StreamsGroupDescribeRequest(group_ids=chosen)
            response = await connection.send(request, StreamsGroupDescribeResponse)
            return {
                each.group_id: error_of(each.error_code, each.error_message)
                if each.error_code
                else description_of(each, node)
                for each in response.groups
            }

        return await self.coordinators.ask(groups, question)


def description_of(group: Described, node: Node) -> StreamsGroupDescription:
    topology = group.topology or Described.Topology()
    return StreamsGroupDescription(
        group.group_id,
        group.group_state,
        group.group_epoch,
        group.assignment_epoch,
        topology.epoch,
        tuple(
            SubtopologyDescription(
                each.subtopology_id,
                tuple(each.source_topics),
                tuple(topic.name for topic in each.repartition_source_topics),
                tuple(topic.name for topic in each.state_changelog_topics),
            )
            for each in topology.subtopologies or ()
        ),
        node,
        tuple(
            StreamsMemberDescription(
                member.member_id,
                member.process_id,
                member.client_id,
                member.client_host,
                member.member_epoch,
                member.topology_epoch,
                assignment_of(member.assignment),
                assignment_of(member.target_assignment),
                member.is_classic,
            )
            for member in group.members
        ),
    )


def assignment_of(assignment: StreamsGroupDescribeResponse.Assignment) -> TaskAssignment:
    def ids(tasks: list[StreamsGroupDescribeResponse.TaskIds]) -> TaskIds:
        return tuple((each.subtopology_id, tuple(each.partitions)) for each in tasks)

    return TaskAssignment(
        ids(assignment.active_tasks), ids(assignment.standby_tasks), ids(assignment.warmup_tasks)
    )
