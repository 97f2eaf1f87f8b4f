"""Consumer groups, their members and what is assigned to each, as resources of v3."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from barnabas.client.admin.groups import CONSUMER, GroupDescription, GroupMember
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.rest.kafka_errors import NOT_FOUND, refusal
from barnabas.rest.v3 import lists
from barnabas.rest.v3.call import Call
from barnabas.rest.v3.resources import Links, Resource
from barnabas.rest.v3.schemas import NO_TOPIC, NOT_THERE, OTHER_CLUSTER, PATH_TYPES
from barnabas.rest.v3.vocabulary import GROUP_STATES, GROUP_TYPES, upper
from barnabas.services.openapi import Operations

GROUPS = Operations("v3: consumer groups", PATH_TYPES)
LIST = "/v3/clusters/{cluster_id}/consumer-groups"
ONE = f"{LIST}/{{consumer_group_id}}"
MEMBER = f"{ONE}/consumers/{{consumer_id}}"
ASSIGNED = f"{MEMBER}/assignments/{{topic_name}}/partitions/{{partition_id}}"
CONSUMER_TYPES = ("", "Classic", "Consumer")
PORTION = 50  # groups in one question
READS = (OTHER_CLUSTER, NOT_THERE)
GONE = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_AUTHORIZATION_FAILED)


@GROUPS.declare(
    "GET",
    LIST,
    "List the groups of consumers",
    responses={200: "ConsumerGroupDataList"},
    errors=(OTHER_CLUSTER,),
)
async def list_groups(call: Call) -> Response:
    async def portion(names: Sequence[str]) -> list[Resource]:
        found = []
        for result in (await call.kafka.admin.describe_groups(names)).values():
            if isinstance(result, GroupDescription):
                found.append(group_resource(call.links, result))
            elif result.code not in GONE:
                raise result
        return found

    listings = await call.kafka.admin.list_groups()
    names = sorted(
        each.group_id
        for each in listings
        if each.protocol_type in (CONSUMER, "") and each.type in CONSUMER_TYPES
    )
    pages = lists.in_portions(names, PORTION, portion)
    return await lists.listed("KafkaConsumerGroupList", call.links.url("consumer-groups"), pages)


@GROUPS.declare("GET", ONE, "Describe a group", responses={200: "ConsumerGroupData"}, errors=READS)
async def get_group(call: Call) -> Response:
    return lists.one(group_resource(call.links, await group_of(call)))


@GROUPS.declare(
    "GET",
    f"{ONE}/consumers",
    "List the members of a group",
    responses={200: "ConsumerDataList"},
    errors=READS,
)
async def list_consumers(call: Call) -> Response:
    group = await group_of(call)
    found = (consumer_resource(call.links, group.group_id, member) for member in group.members)
    url = call.links.url("consumer-groups", group.group_id, "consumers")
    return await lists.listed("KafkaConsumerList", url, lists.page_of(found))


@GROUPS.declare("GET", MEMBER, "Describe a member of a group", responses={200: "ConsumerData"}, errors=READS)
async def get_consumer(call: Call) -> Response:
    group, member = await member_of(call)
    return lists.one(consumer_resource(call.links, group, member))


@GROUPS.declare(
    "GET",
    f"{MEMBER}/assignments",
    "List the partitions that are assigned to a member",
    responses={200: "ConsumerAssignmentDataList"},
    errors=READS,
)
async def list_assignments(call: Call) -> Response:
    group, member = await member_of(call)
    found = (
        assignment_resource(call.links, group, member.member_id, topic_partition)
        for topic_partition in sorted(member.assignment)
    )
    url = call.links.url("consumer-groups", group, "consumers", member.member_id, "assignments")
    return await lists.listed("KafkaConsumerAssignmentList", url, lists.page_of(found))


@GROUPS.declare(
    "GET",
    ASSIGNED,
    "Describe one partition that is assigned to a member",
    responses={200: "ConsumerAssignmentData"},
    errors=(*READS, NO_TOPIC),
)
async def get_assignment(call: Call) -> Response:
    group, member = await member_of(call)
    topic_partition = TopicPartition(call.path("topic_name"), call.number("partition_id"))
    if topic_partition not in member.assignment:
        raise refusal(404, NOT_FOUND, f"Partition {topic_partition} is not assigned to {member.member_id}.")
    return lists.one(assignment_resource(call.links, group, member.member_id, topic_partition))


async def group_of(call: Call) -> GroupDescription:
    """The group that the path names."""
    group_id = call.path("consumer_group_id")
    found = (await call.kafka.admin.describe_groups([group_id]))[group_id]
    if isinstance(found, KafkaError):
        if found.code == ErrorCode.GROUP_ID_NOT_FOUND:
            raise refusal(404, 404, f"Consumer group {group_id[:200]} cannot be found.")
        raise found
    return found


async def member_of(call: Call) -> tuple[str, GroupMember]:
    """The member that the path names, with its group's id."""
    group = await group_of(call)
    consumer_id = call.path("consumer_id")
    for member in group.members:
        if member.member_id == consumer_id:
            return group.group_id, member
    raise refusal(404, 404, f"Consumer group {group.group_id} has no consumer {consumer_id[:200]}.")


def group_resource(links: Links, group: GroupDescription) -> Resource:
    path = ("consumer-groups", group.group_id)
    kinds = {member.is_classic for member in group.members if member.is_classic is not None}
    fields = {
        "consumer_group_id": group.group_id,
        "is_simple": not group.protocol_type,
        "partition_assignor": group.assignor,
        "state": upper(group.state, GROUP_STATES),
        "type": upper(group.type, GROUP_TYPES),
        "is_mixed_consumer_group": len(kinds) > 1,
        "coordinator": links.related("brokers", group.coordinator.id),
        "consumers": links.related(*path, "consumers"),
        "lag_summary": links.related(*path, "lag-summary"),
    }
    name = links.name(("consumer-group", group.group_id))
    return links.resource("KafkaConsumerGroup", links.url(*path), name, fields)


def consumer_resource(links: Links, group: str, member: GroupMember) -> Resource:
    path = ("consumer-groups", group, "consumers", member.member_id)
    fields = {
        "consumer_group_id": group,
        "consumer_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "assignments": links.related(*path, "assignments"),
    }
    name = links.name(("consumer-group", group), ("consumer", member.member_id))
    return links.resource("KafkaConsumer", links.url(*path), name, fields)


def assignment_resource(
    links: Links, group: str, consumer_id: str, topic_partition: TopicPartition
) -> Resource:
    of_partition = (topic_partition.topic, "partitions", topic_partition.partition)
    path = ("consumer-groups", group, "consumers", consumer_id, "assignments", *of_partition)
    fields = {
        "consumer_group_id": group,
        "consumer_id": consumer_id,
        "topic_name": topic_partition.topic,
        "partition_id": topic_partition.partition,
        "partition": links.related("topics", *of_partition),
        "lag": links.related("consumer-groups", group, "lags", *of_partition),
    }
    name = links.name(
        ("consumer-group", group),
        ("consumer", consumer_id),
        ("assignment", topic_partition.topic),
        ("partition", topic_partition.partition),
    )
    return links.resource("KafkaConsumerAssignment", links.url(*path), name, fields)
