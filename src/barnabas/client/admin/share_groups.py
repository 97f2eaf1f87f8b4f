"""Share groups as an administrator sees them: members, start offsets and lag; offsets set and deleted.

In: a Cluster. Out: frozen values, or the error of each group, topic or partition. Groups are listed and
deleted with those of all types (`groups`). Does not know: records that members have acquired.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.client.admin.part import AdminPart
from barnabas.client.core.coordinators import Results
from barnabas.client.core.errors import check, error_of, problem_of
from barnabas.client.core.topology import Node, TopicPartition, by_topic
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

Described = ShareGroupDescribeResponse.DescribedGroup
OffsetGroup = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
OffsetResults = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
AlterTopic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
DeleteTopic = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic


@dataclass(frozen=True, slots=True)
class ShareMemberDescription:
    member_id: str
    client_id: str
    host: str
    epoch: int
    assignment: tuple[TopicPartition, ...]
    subscription: tuple[str, ...] = ()
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class ShareGroupDescription:
    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    coordinator: Node
    members: tuple[ShareMemberDescription, ...]


@dataclass(frozen=True, slots=True)
class ShareOffset:
    """The start offset of a share partition; leader epoch and lag are None where nobody knows them."""

    start_offset: int
    leader_epoch: int | None = None
    lag: int | None = None


ShareOffsets = dict[TopicPartition, ShareOffset | None]


class ShareGroupAdmin(AdminPart):
    async def describe_share_groups(
        self, groups: Iterable[str]
    ) -> dict[str, ShareGroupDescription | KafkaError]:
        async def question(node: Node, chosen: list[str]) -> Results[ShareGroupDescription]:
            connection = await self.cluster.connection_to(node.address)
            request = ShareGroupDescribeRequest(group_ids=chosen)
            response = await connection.send(request, ShareGroupDescribeResponse)
            return {
                each.group_id: error_of(each.error_code, each.error_message)
                if each.error_code
                else description_of(each, node)
                for each in response.groups
            }

        return await self.coordinators.ask(groups, question)

    async def share_group_offsets(self, groups: Iterable[str]) -> dict[str, ShareOffsets | KafkaError]:
        """The share partitions of groups; None for a partition that was not read from yet."""

        async def question(node: Node, chosen: list[str]) -> Results[ShareOffsets]:
            connection = await self.cluster.connection_to(node.address)
            asked = [OffsetGroup(group_id=group, topics=None) for group in chosen]
            request = DescribeShareGroupOffsetsRequest(groups=asked)
            response = await connection.send(request, DescribeShareGroupOffsetsResponse)
            return {each.group_id: offsets_of(each) for each in response.groups}

        return await self.coordinators.ask(groups, question)

    async def alter_share_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Set the start offsets of a group without members. The error of the group is raised."""
        part = AlterTopic.AlterShareGroupOffsetsRequestPartition
        topics = [
            AlterTopic(
                topic_name=name,
                partitions=[
                    part(partition_index=each.partition, start_offset=offsets[each]) for each in some
                ],
            )
            for name, some in by_topic(offsets).items()
        ]
        request = AlterShareGroupOffsetsRequest(group_id=group, topics=topics)

        async def question(node: Node) -> dict[TopicPartition, KafkaError | None]:
            connection = await self.cluster.connection_to(node.address)
            response = await connection.send(request, AlterShareGroupOffsetsResponse)
            check(response.error_code, response.error_message)
            return {
                TopicPartition(topic.topic_name, each.partition_index): problem_of(
                    each.error_code, each.error_message
                )
                for topic in response.responses
                for each in topic.partitions
            }

        return await self.coordinators.ask_one(group, question)

    async def delete_share_group_offsets(
        self, group: str, topics: Iterable[str]
    ) -> dict[str, KafkaError | None]:
        """Forget topics of a group without members. The error of the group is raised."""
        wanted = [DeleteTopic(topic_name=name) for name in topics]
        request = DeleteShareGroupOffsetsRequest(group_id=group, topics=wanted)

        async def question(node: Node) -> dict[str, KafkaError | None]:
            connection = await self.cluster.connection_to(node.address)
            response = await connection.send(request, DeleteShareGroupOffsetsResponse)
            check(response.error_code, response.error_message)
            return {
                each.topic_name: problem_of(each.error_code, each.error_message)
                for each in response.responses
            }

        return await self.coordinators.ask_one(group, question)


def description_of(group: Described, coordinator: Node) -> ShareGroupDescription:
    return ShareGroupDescription(
        group.group_id,
        group.group_state,
        group.group_epoch,
        group.assignment_epoch,
        group.assignor_name,
        coordinator,
        tuple(map(member_of, group.members)),
    )


def member_of(member: Described.Member) -> ShareMemberDescription:
    return ShareMemberDescription(
        member.member_id,
        member.client_id,
        member.client_host,
        member.member_epoch,
        tuple(
            TopicPartition(topic.topic_name, index)
            for topic in member.assignment.topic_partitions
            for index in topic.partitions
        ),
        tuple(member.subscribed_topic_names),
        member.rack_id,
    )


def offsets_of(group: OffsetResults) -> ShareOffsets | KafkaError:
    """The offsets of one group; a partition with an error of its own is left out."""
    if group.error_code:
        return error_of(group.error_code, group.error_message)
    return {
        TopicPartition(topic.topic_name, each.partition_index): ShareOffset(
            each.start_offset, known(each.leader_epoch), known(each.lag)
        )
        if each.start_offset >= 0
        else None
        for topic in group.topics
        for each in topic.partitions
        if not each.error_code
    }


def known(number: int) -> int | None:
    return None if number < 0 else number
