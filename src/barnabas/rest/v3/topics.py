"""Topics as resources of v3: list, describe, create, grow, delete."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from starlette.responses import Response

from barnabas.client.admin.topics import BROKER_DEFAULT, NewTopic, TopicDescription
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.rest.kafka_errors import refusal, text_of
from barnabas.rest.v3 import lists
from barnabas.rest.v3.call import Call
from barnabas.rest.v3.fields import Fields, integer_of, wrong
from barnabas.rest.v3.resources import Links, Resource
from barnabas.rest.v3.schemas import INCOMPLETE, NO_TOPIC, OTHER_CLUSTER, PATH_TYPES, WRITES
from barnabas.rest.v3.topic_pages import topic_pages
from barnabas.rest.v3.vocabulary import operation_words
from barnabas.services.openapi import Operations, Parameter
from barnabas.services.routes import Need

TOPICS = Operations("v3: topics", PATH_TYPES, writes=Need.ADMIN)
LIST = "/v3/clusters/{cluster_id}/topics"
ONE = f"{LIST}/{{topic_name}}"
CREATED = 201
INCLUDE_OPERATIONS = Parameter(
    "include_authorized_operations", "boolean", "also tell what the caller may do with the topic"
)
NEW_TOPIC_FIELDS = (
    "topic_name",
    "partitions_count",
    "replication_factor",
    "replicas_assignments",
    "configs",
    "validate_only",
)


@TOPICS.declare("GET", LIST, "List the topics", responses={200: "TopicDataList"}, errors=(OTHER_CLUSTER,))
async def list_topics(call: Call) -> Response:
    async def pages() -> AsyncIterator[Iterable[Resource]]:
        async for topics in topic_pages(call.kafka.admin):
            yield (topic_resource(call.links, topic) for topic in topics)

    return await lists.listed("KafkaTopicList", call.links.url("topics"), pages())


@TOPICS.declare(
    "POST",
    LIST,
    "Create a topic, or only check whether it could be created",
    request="CreateTopicRequestData",
    responses={201: "TopicData", 200: "TopicData"},
    errors=WRITES,
)
async def create_topic(call: Call) -> Response:
    fields = Fields(await call.body(), NEW_TOPIC_FIELDS)
    topic = new_topic(fields)
    validate_only = fields.flag("validate_only")
    admin = call.kafka.admin
    try:
        await admin.create_topic(topic, validate_only=validate_only)
    except KafkaError as error:
        if error.code == ErrorCode.INVALID_TOPIC_EXCEPTION:
            raise refusal(422, INCOMPLETE.code, text_of(error)) from None
        raise
    assigned = topic.assignments
    partitions = len(assigned) if assigned else topic.partitions
    factor = len(assigned[0]) if assigned else topic.replication_factor
    if not validate_only and BROKER_DEFAULT in (partitions, factor):
        described = await described_or_none(call, topic.name)
        if described is not None:
            partitions, factor = len(described.partitions), factor_of(described)
    resource = resource_of(call.links, topic.name, False, max(factor, 0), max(partitions, 0))
    response = lists.one(resource, 200 if validate_only else CREATED)
    if not validate_only:
        response.headers["location"] = call.links.url("topics", topic.name)
    return response


@TOPICS.declare(
    "GET",
    ONE,
    "Describe a topic",
    query=(INCLUDE_OPERATIONS,),
    responses={200: "TopicData"},
    errors=(OTHER_CLUSTER, NO_TOPIC),
)
async def get_topic(call: Call) -> Response:
    topic = await topic_of(call)
    resource = topic_resource(call.links, topic)
    if call.flag(INCLUDE_OPERATIONS.name):
        resource["authorized_operations"] = operation_words(topic.authorized_operations or 0)
    return lists.one(resource)


@TOPICS.declare(
    "PATCH",
    ONE,
    "Raise the number of partitions",
    request="UpdatePartitionCountRequestData",
    responses={200: "TopicData"},
    errors=(*WRITES, NO_TOPIC),
)
async def update_partition_count(call: Call) -> Response:
    count = Fields(await call.body(), ("partitions_count",)).integer("partitions_count")
    await call.kafka.admin.create_partitions({call.path("topic_name"): count})
    topic = await topic_of(call)
    resource = resource_of(call.links, topic.name, topic.internal, factor_of(topic), count)
    return lists.one(resource)


@TOPICS.declare("DELETE", ONE, "Delete a topic", responses={204: None}, errors=(OTHER_CLUSTER, NO_TOPIC))
async def delete_topic(call: Call) -> Response:
    await call.kafka.admin.delete_topics([call.path("topic_name")])
    return Response(status_code=204)


async def topic_of(call: Call) -> TopicDescription:
    """The topic that the path names."""
    [topic] = await call.kafka.admin.describe_topics([call.path("topic_name")])
    return topic


async def described_or_none(call: Call, name: str) -> TopicDescription | None:
    """A topic that was just created: another broker may not know it yet."""
    try:
        [topic] = await call.kafka.admin.describe_topics([name])
    except KafkaError as error:
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return None
        raise
    return topic


def new_topic(fields: Fields) -> NewTopic:
    partitions = fields.integer_or_none("partitions_count")
    factor = fields.integer_or_none("replication_factor")
    configs: dict[str, Any] = {}
    for value, place in fields.items("configs", required=False):
        config = Fields(value, ("name", "value"), place)
        configs[config.text("name")] = config.text_or_none("value")
    return NewTopic(
        fields.text("topic_name"),
        BROKER_DEFAULT if partitions is None else partitions,
        BROKER_DEFAULT if factor is None else small(factor, "replication_factor"),
        replicas_of(fields.mapping("replicas_assignments")),
        configs,
    )


def small(value: int, place: str) -> int:
    if not -(2**15) <= value < 2**15:
        raise refusal(400, 40002, f"{place} does not fit into 16 bits.")
    return value


def replicas_of(assignments: dict[str, Any]) -> Sequence[Sequence[int]]:
    """Replicas of each partition, by the number of the partition as text."""
    found = []
    for index in range(len(assignments)):
        place = f"replicas_assignments.{index}"
        replicas = assignments.get(str(index))
        if replicas is None:
            raise refusal(400, 40002, f"{place} is missing: partitions are numbered from 0 without gaps.")
        if not isinstance(replicas, list):
            raise wrong(place, "an array", replicas)
        found.append([integer_of(each, place) for each in replicas])
    return found


def factor_of(topic: TopicDescription) -> int:
    return len(topic.partitions[0].replicas) if topic.partitions else 0


def topic_resource(links: Links, topic: TopicDescription) -> Resource:
    return resource_of(links, topic.name, topic.internal, factor_of(topic), len(topic.partitions))


def resource_of(links: Links, name: str, internal: bool, factor: int, partitions: int) -> Resource:
    fields = {
        "topic_name": name,
        "is_internal": internal,
        "replication_factor": factor,
        "partitions_count": partitions,
        "partitions": links.related("topics", name, "partitions"),
        "configs": links.related("topics", name, "configs"),
        "partition_reassignments": links.related("topics", name, "partitions", "-", "reassignment"),
    }
    return links.resource("KafkaTopic", links.url("topics", name), links.name(("topic", name)), fields)
