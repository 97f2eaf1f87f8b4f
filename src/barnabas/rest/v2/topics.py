"""Topics, partitions, their offsets, and brokers. None of these requests creates a topic."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.admin.offsets import FoundOffset, OffsetSpec
from barnabas.client.core.topology import Partition, Topic, TopicPartition
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.rest.kafka import Kafka
from barnabas.rest.kafka_errors import NOT_FOUND, PARTITION_NOT_FOUND
from barnabas.rest.v2.call import INT_MAX, json_response, read_control
from barnabas.services.errors import ApiError

NO_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)


async def list_topics(request: Request, kafka: Kafka) -> Response:
    await read_control(request)
    return json_response([each.name for each in await kafka.admin.list_topics()])


async def get_topic(request: Request, kafka: Kafka) -> Response:
    await read_control(request)
    topic = await find_topic(request, kafka)
    resource = ConfigResource(ResourceType.TOPIC, topic.name)
    entries = (await kafka.admin.describe_configs([resource]))[resource]
    return json_response(
        {
            "name": topic.name,
            "configs": {each.name: each.value for each in entries},
            "partitions": [shown(each) for _, each in sorted(topic.partitions.items())],
        }
    )


async def list_partitions(request: Request, kafka: Kafka) -> Response:
    await read_control(request)
    topic = await find_topic(request, kafka)
    return json_response([shown(each) for _, each in sorted(topic.partitions.items())])


async def get_partition(request: Request, kafka: Kafka) -> Response:
    await read_control(request)
    topic = await find_topic(request, kafka)
    return json_response(shown(topic.partitions[partition_of(request, topic)]))


async def get_offsets(request: Request, kafka: Kafka) -> Response:
    await read_control(request)
    topic = await find_topic(request, kafka)
    topic_partition = TopicPartition(topic.name, partition_of(request, topic))
    found = []
    for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST):
        result = (await kafka.admin.list_offsets({topic_partition: spec}))[topic_partition]
        if not isinstance(result, FoundOffset):
            raise result
        found.append(result.offset)
    return json_response({"beginning_offset": found[0], "end_offset": found[1]})


async def list_brokers(request: Request, kafka: Kafka) -> Response:
    await read_control(request)
    return json_response({"brokers": [node.id for node in (await kafka.admin.describe_cluster()).nodes]})


async def root(request: Request, kafka: Kafka) -> Response:
    await read_control(request)
    return json_response({})


async def find_topic(request: Request, kafka: Kafka) -> Topic:
    name: str = request.path_params["topic"]
    try:
        return (await kafka.cluster.retrying(lambda: kafka.cluster.topics([name]), final=NO_TOPIC))[name]
    except KafkaError as error:
        if error.code in NO_TOPIC:
            raise ApiError(404, NOT_FOUND, f"Topic {name[:249]} not found.") from None
        raise


def partition_of(request: Request, topic: Topic) -> int:
    number = partition_number(request.path_params["partition"])
    if number not in topic.partitions:
        raise no_partition(topic, number)
    return number


def partition_number(given: str) -> int:
    if not (given.isascii() and given.isdigit() and len(given) <= 10 and int(given) <= INT_MAX):
        raise ApiError(404, PARTITION_NOT_FOUND, f"Partition {given[:20]!r} not found: it is a whole number.")
    return int(given)


def no_partition(topic: Topic, number: int) -> ApiError:
    return ApiError(
        404,
        PARTITION_NOT_FOUND,
        f"Partition {number} not found: topic {topic.name} has {topic.partition_count} partitions.",
    )


def shown(partition: Partition) -> dict[str, Any]:
    return {
        "partition": partition.index,
        "leader": partition.leader,
        "replicas": [
            {
                "broker": broker,
                "leader": broker == partition.leader,
                "in_sync": broker in partition.isr,
            }
            for broker in partition.replicas
        ],
    }
