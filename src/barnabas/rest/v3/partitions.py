"""Partitions, their replicas, offsets and reassignments as resources of v3."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from starlette.responses import Response

from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.admin.topics import PartitionDescription, Reassignment
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError
from barnabas.rest.kafka_errors import NOT_FOUND, refusal
from barnabas.rest.v3 import lists
from barnabas.rest.v3.call import Call
from barnabas.rest.v3.clusters import broker_of
from barnabas.rest.v3.resources import Links, Resource
from barnabas.rest.v3.schemas import NO_TOPIC, NOT_THERE, OTHER_CLUSTER, PATH_TYPES
from barnabas.rest.v3.topic_pages import topic_pages
from barnabas.rest.v3.topics import topic_of
from barnabas.services.openapi import Failure, Operations, Parameter, one_of

PARTITIONS = Operations("v3: partitions", PATH_TYPES)
LIST = "/v3/clusters/{cluster_id}/topics/{topic_name}/partitions"
ONE = f"{LIST}/{{partition_id}}"
OFFSETS = {"earliest": OffsetSpec.EARLIEST, "latest": OffsetSpec.LATEST}
READS = (OTHER_CLUSTER, NO_TOPIC)
READS_ONE = (OTHER_CLUSTER, NOT_THERE, NO_TOPIC)


@PARTITIONS.declare(
    "GET", LIST, "List the partitions of a topic", responses={200: "PartitionDataList"}, errors=READS
)
async def list_partitions(call: Call) -> Response:
    topic = await topic_of(call)
    found = (partition_resource(call.links, topic.name, each) for each in topic.partitions)
    url = call.links.url("topics", topic.name, "partitions")
    return await lists.listed("KafkaPartitionList", url, lists.page_of(found))


@PARTITIONS.declare("GET", ONE, "Describe a partition", responses={200: "PartitionData"}, errors=READS)
async def get_partition(call: Call) -> Response:
    topic_partition, partition = await partition_of(call)
    return lists.one(partition_resource(call.links, topic_partition.topic, partition))


@PARTITIONS.declare(
    "GET",
    f"{ONE}/offset",
    "The earliest and the latest offset of a partition",
    query=(Parameter("offset_type", one_of(*OFFSETS), "only this one"),),
    responses={200: "PartitionWithOffsetsData"},
    errors=(*READS, Failure(400, 400, "offset_type is neither earliest nor latest")),
)
async def get_offsets(call: Call) -> Response:
    topic_partition, _ = await partition_of(call)
    wanted = call.choice("offset_type", OFFSETS)
    links = call.links
    fields: dict[str, object] = {
        "topic_name": topic_partition.topic,
        "partition_id": topic_partition.partition,
    }
    for word in OFFSETS if wanted is None else (wanted,):
        found = (await call.kafka.admin.list_offsets({topic_partition: OFFSETS[word]}))[topic_partition]
        if isinstance(found, KafkaError):
            raise found
        fields[f"{word}_offset"] = found.offset
    path = ("topics", topic_partition.topic, "partitions", topic_partition.partition, "offset")
    name = links.name(("topic", topic_partition.topic), ("partition", topic_partition.partition), "offset")
    return lists.one(links.resource("KafkaPartition", links.url(*path), name, fields))


@PARTITIONS.declare(
    "GET",
    f"{ONE}/replicas",
    "List the replicas of a partition",
    responses={200: "ReplicaDataList"},
    errors=READS,
)
async def list_replicas(call: Call) -> Response:
    topic_partition, partition = await partition_of(call)
    found = (
        replica_resource(call.links, topic_partition, partition, broker) for broker in partition.replicas
    )
    url = call.links.url("topics", topic_partition.topic, "partitions", topic_partition.partition, "replicas")
    return await lists.listed("KafkaReplicaList", url, lists.page_of(found))


@PARTITIONS.declare(
    "GET",
    f"{ONE}/replicas/{{broker_id}}",
    "Describe a replica",
    responses={200: "ReplicaData"},
    errors=READS_ONE,
)
async def get_replica(call: Call) -> Response:
    topic_partition, partition = await partition_of(call)
    broker_id = call.number("broker_id")
    if broker_id not in partition.replicas:
        raise refusal(404, 404, f"Partition {topic_partition} has no replica on broker {broker_id}.")
    return lists.one(replica_resource(call.links, topic_partition, partition, broker_id))


@PARTITIONS.declare(
    "GET",
    "/v3/clusters/{cluster_id}/brokers/{broker_id}/partition-replicas",
    "List the replicas on a broker",
    responses={200: "ReplicaDataList"},
    errors=(OTHER_CLUSTER, NOT_THERE),
)
async def list_replicas_of_broker(call: Call) -> Response:
    broker_id = (await broker_of(call)).id

    async def pages() -> AsyncIterator[Iterable[Resource]]:
        async for topics in topic_pages(call.kafka.admin):
            yield (
                replica_resource(call.links, TopicPartition(topic.name, each.index), each, broker_id)
                for topic in topics
                for each in topic.partitions
                if broker_id in each.replicas
            )

    url = call.links.url("brokers", broker_id, "partition-replicas")
    return await lists.listed("KafkaReplicaList", url, pages())


@PARTITIONS.declare(
    "GET",
    "/v3/clusters/{cluster_id}/topics/-/partitions/-/reassignment",
    "List the partitions whose replicas are being moved",
    responses={200: "ReassignmentDataList"},
    errors=(OTHER_CLUSTER,),
)
async def list_all_reassignments(call: Call) -> Response:
    moving = await call.kafka.admin.list_reassignments()
    return await reassignments(call, "-", moving)


@PARTITIONS.declare(
    "GET",
    f"{LIST}/-/reassignment",
    "List the partitions of a topic whose replicas are being moved",
    responses={200: "ReassignmentDataList"},
    errors=READS,
)
async def list_reassignments_of_topic(call: Call) -> Response:
    topic = await topic_of(call)
    asked = [TopicPartition(topic.name, each.index) for each in topic.partitions]
    moving = await call.kafka.admin.list_reassignments(asked)
    return await reassignments(call, topic.name, moving)


@PARTITIONS.declare(
    "GET",
    f"{ONE}/reassignment",
    "Describe how the replicas of a partition are being moved",
    responses={200: "ReassignmentData"},
    errors=READS_ONE,
)
async def get_reassignment(call: Call) -> Response:
    topic_partition, _ = await partition_of(call)
    moving = (await call.kafka.admin.list_reassignments([topic_partition])).get(topic_partition)
    if moving is None:
        raise refusal(404, 404, f"The replicas of partition {topic_partition} are not being moved.")
    return lists.one(reassignment_resource(call.links, topic_partition, moving))


async def partition_of(call: Call) -> tuple[TopicPartition, PartitionDescription]:
    """The partition that the path names."""
    index = call.number("partition_id")
    topic = await topic_of(call)
    for partition in topic.partitions:
        if partition.index == index:
            return TopicPartition(topic.name, index), partition
    raise refusal(404, NOT_FOUND, f"Topic {topic.name} has no partition {index}.")


async def reassignments(call: Call, topic: str, moving: dict[TopicPartition, Reassignment]) -> Response:
    found = (
        reassignment_resource(call.links, topic_partition, moving[topic_partition])
        for topic_partition in sorted(moving)
    )
    url = call.links.url("topics", topic, "partitions", "-", "reassignment")
    return await lists.listed("KafkaReassignmentList", url, lists.page_of(found))


def partition_resource(links: Links, topic: str, partition: PartitionDescription) -> Resource:
    path = ("topics", topic, "partitions", partition.index)
    fields: dict[str, object] = {"topic_name": topic, "partition_id": partition.index}
    if partition.leader is not None:
        fields["leader"] = links.related(*path, "replicas", partition.leader)
    fields["replicas"] = links.related(*path, "replicas")
    fields["reassignment"] = links.related(*path, "reassignment")
    name = links.name(("topic", topic), ("partition", partition.index))
    return links.resource("KafkaPartition", links.url(*path), name, fields)


def replica_resource(
    links: Links, topic_partition: TopicPartition, partition: PartitionDescription, broker_id: int
) -> Resource:
    fields = {
        "topic_name": topic_partition.topic,
        "partition_id": topic_partition.partition,
        "broker_id": broker_id,
        "is_leader": partition.leader == broker_id,
        "is_in_sync": broker_id in partition.isr,
        "broker": links.related("brokers", broker_id),
    }
    url = links.url(
        "topics", topic_partition.topic, "partitions", topic_partition.partition, "replicas", broker_id
    )
    name = links.name(
        ("topic", topic_partition.topic), ("partition", topic_partition.partition), ("replica", broker_id)
    )
    return links.resource("KafkaReplica", url, name, fields)


def reassignment_resource(links: Links, topic_partition: TopicPartition, moving: Reassignment) -> Resource:
    path = ("topics", topic_partition.topic, "partitions", topic_partition.partition)
    fields = {
        "topic_name": topic_partition.topic,
        "partition_id": topic_partition.partition,
        "adding_replicas": list(moving.adding),
        "removing_replicas": list(moving.removing),
        "replicas": links.related(*path, "replicas"),
    }
    name = links.name(
        ("topic", topic_partition.topic), ("partition", topic_partition.partition), "reassignment"
    )
    return links.resource("KafkaReassignment", links.url(*path, "reassignment"), name, fields)
