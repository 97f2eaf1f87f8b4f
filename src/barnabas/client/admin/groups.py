"""Groups as an administrator sees them: list, describe with members and assignments, delete.

In: a Cluster. Out: frozen values; an error is that of its group. Groups of both protocols are described:
first by ConsumerGroupDescribe, and what is not found there by DescribeGroups.
Does not know: offsets (`group_offset_admin`).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.client.admin.part import AdminPart
from barnabas.client.core.coordinators import Results
from barnabas.client.core.errors import UnsupportedApi, check, error_of, problem_of
from barnabas.client.core.topology import Node, TopicPartition
from barnabas.protocol import ErrorCode, KafkaError, ProtocolError
from barnabas.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

CONSUMER = "consumer"  # the protocol type of consumers
ASSIGNMENT_VERSION_MAX = 3
STATES_SINCE, TYPES_SINCE = 4, 5  # versions of ListGroups that tell them
NOT_THIS_KIND = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
DEAD = "Dead"
REMOVED = "an administrator removed the member"

NewMember = ConsumerGroupDescribeResponse.DescribedGroup.Member
NewGroup = ConsumerGroupDescribeResponse.DescribedGroup
ClassicGroup = DescribeGroupsResponse.DescribedGroup


@dataclass(frozen=True, slots=True)
class GroupListing:
    """`state` and `type` are empty where a broker is too old to tell them."""

    group_id: str
    protocol_type: str
    state: str = ""
    type: str = ""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """Epoch, target and `is_classic` are known of groups of the new protocol only."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...] = ()
    epoch: int | None = None
    is_classic: bool | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: Node
    members: tuple[GroupMember, ...]
    epoch: int | None = None
    target_epoch: int | None = None


class GroupAdmin(AdminPart):
    async def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> list[GroupListing]:
        """The groups of all brokers; a filter that is empty lets all through."""
        topology = await self.cluster.retrying(self.cluster.refresh)
        wanted_states, wanted_types = list(states), list(types)
        parts = await self.cluster.network.gather(
            self._list_on(node, wanted_states, wanted_types) for node in topology.nodes.values()
        )
        found = {listing.group_id: listing for part in parts for listing in part}
        return list(found.values())

    async def _list_on(self, node: Node, states: list[str], types: list[str]) -> list[GroupListing]:
        async def attempt() -> list[GroupListing]:
            connection = await self.cluster.connection_to(node.address)
            version = connection.version_for(ListGroupsRequest)
            for filters, since in ((states, STATES_SINCE), (types, TYPES_SINCE)):
                if filters and version < since:
                    reason = f"it speaks ListGroups up to version {version}"
                    raise UnsupportedApi(connection.address, "a filter of groups", reason)
            request = ListGroupsRequest(states_filter=states, types_filter=types)
            response = await connection.send(request, ListGroupsResponse, version=version)
            check(response.error_code)
            return [
                GroupListing(
                    each.group_id, each.protocol_type, each.group_state, each.group_type.capitalize()
                )
                for each in response.groups
            ]

        return await self.cluster.retrying(attempt)

    async def describe_groups(self, groups: Iterable[str]) -> dict[str, GroupDescription | KafkaError]:
        wanted = list(dict.fromkeys(groups))
        found = await self.coordinators.ask(wanted, self._describe_new)
        others = [
            group
            for group, result in found.items()
            if isinstance(result, KafkaError) and result.code in NOT_THIS_KIND
        ]
        found |= await self.coordinators.ask(others, self._describe_classic)
        return {group: found[group] for group in wanted}

    async def _describe_new(self, node: Node, groups: list[str]) -> Results[GroupDescription]:
        connection = await self.cluster.connection_to(node.address)
        request = ConsumerGroupDescribeRequest(group_ids=groups)
        try:
            response = await connection.send(request, ConsumerGroupDescribeResponse)
        except UnsupportedApi:
            return dict.fromkeys(groups, KafkaError(ErrorCode.UNSUPPORTED_VERSION))
        return {
            each.group_id: error_of(each.error_code, each.error_message)
            if each.error_code
            else new_description(each, node)
            for each in response.groups
        }

    async def _describe_classic(self, node: Node, groups: list[str]) -> Results[GroupDescription]:
        connection = await self.cluster.connection_to(node.address)
        response = await connection.send(DescribeGroupsRequest(groups=groups), DescribeGroupsResponse)
        return {each.group_id: classic_description(each, node) for each in response.groups}

    async def delete_groups(self, groups: Iterable[str]) -> dict[str, KafkaError | None]:
        """Why each group could not be deleted; None where it is."""

        async def question(node: Node, chosen: list[str]) -> Results[None]:
            connection = await self.cluster.connection_to(node.address)
            response = await connection.send(DeleteGroupsRequest(groups_names=chosen), DeleteGroupsResponse)
            return {each.group_id: problem_of(each.error_code) for each in response.results}

        return await self.coordinators.ask(groups, question)

    async def remove_members(self, group: GroupDescription) -> dict[str, KafkaError | None]:
        """Make the members of a classic or consumer group leave; why each could not."""
        member = LeaveGroupRequest.MemberIdentity
        members = [
            # A static member leaves by its instance; by its id it would only be told to come back.
            member(
                member_id=each.member_id if each.instance_id is None else "",
                group_instance_id=each.instance_id,
                reason=REMOVED,
            )
            for each in group.members
        ]

        async def question(node: Node, chosen: list[str]) -> Results[dict[str, KafkaError | None]]:
            connection = await self.cluster.connection_to(node.address)
            request = LeaveGroupRequest(group_id=group.group_id, members=members)
            response = await connection.send(request, LeaveGroupResponse)
            check(response.error_code)
            found = {
                each.group_instance_id or each.member_id: problem_of(each.error_code)
                for each in response.members
            }
            return {group.group_id: found}

        result = (await self.coordinators.ask([group.group_id], question))[group.group_id]
        if isinstance(result, KafkaError):
            raise result
        return result


def new_description(group: NewGroup, coordinator: Node) -> GroupDescription:
    return GroupDescription(
        group.group_id,
        "Consumer",
        group.group_state,
        CONSUMER,
        group.assignor_name,
        coordinator,
        tuple(map(new_member, group.members)),
        group.group_epoch,
        group.assignment_epoch,
    )


def new_member(member: NewMember) -> GroupMember:
    return GroupMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        partitions_of(member.assignment),
        partitions_of(member.target_assignment),
        member.member_epoch,
        None if member.member_type < 0 else member.member_type == 0,
    )


def partitions_of(assignment: ConsumerGroupDescribeResponse.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, index)
        for topic in assignment.topic_partitions
        for index in topic.partitions
    )


def classic_description(group: ClassicGroup, coordinator: Node) -> GroupDescription | KafkaError:
    if group.error_code:
        return error_of(group.error_code, group.error_message)
    if group.group_state == DEAD:  # how brokers before DescribeGroups 6 say it
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} not found.")
    is_consumer = group.protocol_type == CONSUMER
    members = tuple(
        GroupMember(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            classic_assignment(each.member_assignment) if is_consumer else (),
        )
        for each in group.members
    )
    return GroupDescription(
        group.group_id,
        "Classic",
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        coordinator,
        members,
    )


def classic_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """The assignment that the leader of the group wrote for a member; nothing when it cannot be read."""
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        return ()
    try:
        assigned = ConsumerProtocolAssignment.decode(data[2:], min(version, ASSIGNMENT_VERSION_MAX))
    except ProtocolError:
        return ()
    return tuple(
        TopicPartition(topic.topic, index)
        for topic in assigned.assigned_partitions
        for index in topic.partitions
    )
