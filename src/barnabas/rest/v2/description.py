"""Endpoints of API v2, declared: paths, rights, bodies, responses and errors.

The endpoints themselves are objects with state; the routes bind them by the ids that stand here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from barnabas.rest.v2.media import ALL, V2
from barnabas.services.openapi import (
    Failure,
    Operations,
    Parameter,
    Schema,
    nullable,
    object_of,
    one_of,
)
from barnabas.services.routes import Need

TOPICS = Operations("v2: topics", {"partition": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}})
CONSUMERS = Operations("v2: consumers")
PARTS = (TOPICS, CONSUMERS)
INSTANCE = "/consumers/{group}/instances/{instance}"
TOPIC = "/topics/{topic}"
PARTITION = f"{TOPIC}/partitions/{{partition}}"

BAD = Failure(400, 400, "the body is no JSON, or a value has another type")
INVALID = Failure(422, 422, "a field is missing or unknown")
NO_TOPIC = Failure(404, 40403, "unknown topic")
NO_PARTITION = Failure(404, 40402, "unknown partition")
NO_INSTANCE = Failure(404, 40403, "unknown consumer instance")
ILLEGAL = Failure(409, 40903, "the instance has a subscription or an assignment of the other kind, or none")
PRODUCE_ERRORS = (
    NO_TOPIC,
    BAD,
    INVALID,
    Failure(422, 42201, "keys without a key schema"),
    Failure(422, 42202, "values without a value schema"),
    Failure(422, 42205, "the schema cannot be parsed"),
    Failure(422, 42207, "unknown schema id"),
    Failure(408, 40801, "the schema registry failed"),
    Failure(500, 50002, "an error of Kafka"),
    Failure(500, 50003, "an error of Kafka that may pass"),
)


async def declared_only(call: Any) -> Response:
    """Stands for the endpoint, which the routes bind."""
    raise NotImplementedError


def declare(part: Operations, id: str, method: str, path: str, summary: str, **details: Any) -> None:
    given = {
        "needs": Need.READ,  # consumers only read
        "request_types": (V2,),
        "response_types": (V2,),
        "id": id,
        **details,
    }
    part.declare(method, path, summary, **given)(declared_only)


def read(id: str, path: str, summary: str, response: Schema, *errors: Failure) -> None:
    declare(TOPICS, id, "GET", path, summary, responses={200: response}, errors=errors)


read("root", "/", "Nothing but an empty object", "object")
read("list_brokers_v2", "/brokers", "List the ids of the brokers", "BrokerList")
read("list_topics_v2", "/topics", "List the names of the topics", ["string"])
read("get_topic_v2", TOPIC, "Describe a topic", "GetTopicResponse", NO_TOPIC)
read("list_partitions_v2", f"{TOPIC}/partitions", "List the partitions", ["GetPartitionResponse"], NO_TOPIC)
read("get_partition_v2", PARTITION, "Describe a partition", "GetPartitionResponse", NO_TOPIC, NO_PARTITION)
read(
    "get_offsets_v2",
    f"{PARTITION}/offsets",
    "The first and the next offset of a partition",
    "TopicPartitionOffsetResponse",
    NO_TOPIC,
    NO_PARTITION,
)
declare(
    TOPICS,
    "produce_to_topic",
    "POST",
    TOPIC,
    "Produce records; the Content-Type names the format of keys and values",
    needs=Need.WRITE,
    request="TopicProduceRequest",
    request_types=ALL,
    responses={200: "ProduceResponseV2"},
    errors=PRODUCE_ERRORS,
)
declare(
    TOPICS,
    "produce_to_partition",
    "POST",
    PARTITION,
    "Produce records to one partition",
    needs=Need.WRITE,
    request="PartitionProduceRequest",
    request_types=ALL,
    responses={200: "ProduceResponseV2"},
    errors=(*PRODUCE_ERRORS, NO_PARTITION),
)
declare(
    CONSUMERS,
    "create",
    "POST",
    "/consumers/{group}",
    "Create a consumer instance in a group",
    request="CreateConsumerInstanceRequest",
    request_required=False,
    responses={200: "CreateConsumerInstanceResponse"},
    errors=(
        BAD,
        INVALID,
        Failure(409, 40902, "an instance has this name"),
        Failure(422, 42204, "a setting has a wrong value"),
        Failure(429, 42901, "too many instances"),
    ),
)


def of_instance(
    id: str,
    method: str,
    path: str,
    summary: str,
    request: Schema = None,
    response: Schema = None,
    *errors: Failure,
    **details: Any,
) -> None:
    declare(
        CONSUMERS,
        id,
        method,
        INSTANCE + path,
        summary,
        request=request,
        responses={204 if response is None else 200: response},
        errors=(NO_INSTANCE, *((BAD, INVALID) if request is not None else ()), *errors),
        **details,
    )


of_instance("delete", "DELETE", "", "Close an instance: it leaves its group")
of_instance(
    "subscribe", "POST", "/subscription", "Subscribe to topics", "ConsumerSubscription", None, ILLEGAL
)
of_instance("subscription", "GET", "/subscription", "The topics subscribed to", None, "SubscribedTopics")
of_instance("unsubscribe", "DELETE", "/subscription", "Give up the subscription")
of_instance("assign", "POST", "/assignments", "Read these partitions", "ConsumerPartitions", None, ILLEGAL)
of_instance("assignments", "GET", "/assignments", "The partitions that are read", None, "ConsumerPartitions")
of_instance("seek", "POST", "/positions", "Read on from these offsets", "ConsumerSeek", None, ILLEGAL)
of_instance(
    "seek_to_beginning",
    "POST",
    "/positions/beginning",
    "Read partitions from their beginning",
    "ConsumerPartitions",
    None,
    ILLEGAL,
)
of_instance(
    "seek_to_end",
    "POST",
    "/positions/end",
    "Read partitions from their end",
    "ConsumerPartitions",
    None,
    ILLEGAL,
)
of_instance(
    "records",
    "GET",
    "/records",
    "Read records; Accept names the format of the instance",
    None,
    ["ConsumerRecordV2"],
    BAD,
    Failure(406, 40601, "the instance has another format"),
    query=(
        Parameter("timeout", "integer", "how long to wait, in milliseconds"),
        Parameter("max_bytes", "long", "how many bytes of records at most"),
    ),
    response_types=ALL,
)
of_instance(
    "commit",
    "POST",
    "/offsets",
    "Commit offsets: those given, each as the last record handled, or everything that was read",
    "ConsumerOffsets",
    {"type": "array"},
    request_required=False,
)
of_instance(
    "committed",
    "GET",
    "/offsets",
    "The committed offsets of partitions, which the body names",
    "ConsumerPartitions",
    "ConsumerOffsets",
    NO_PARTITION,
)

SCHEMA_FIELDS: Mapping[str, Schema] = {
    "key_schema": nullable("string"),
    "key_schema_id": nullable("integer"),
    "value_schema": nullable("string"),
    "value_schema_id": nullable("integer"),
}
PLACE: Mapping[str, Schema] = {"topic": "string", "partition": "integer"}
RECORD: Mapping[str, Schema] = {"key": "any", "value": "any"}
POSITION = object_of({**PLACE, "offset": "long"}, {"metadata": nullable("string")})
SCHEMAS: dict[str, dict[str, Any]] = {
    "BrokerList": object_of({"brokers": ["integer"]}),
    "GetPartitionResponse": object_of(
        {
            "partition": "integer",
            "leader": "integer",
            "replicas": [object_of({"broker": "integer", "leader": "boolean", "in_sync": "boolean"})],
        }
    ),
    "GetTopicResponse": object_of(
        {"name": "string", "configs": "object", "partitions": ["GetPartitionResponse"]}
    ),
    "TopicPartitionOffsetResponse": object_of({"beginning_offset": "long", "end_offset": "long"}),
    "TopicProduceRequest": object_of(
        {"records": [object_of(None, {**RECORD, "partition": nullable("integer")})]}, SCHEMA_FIELDS
    ),
    "PartitionProduceRequest": object_of({"records": [object_of(None, RECORD)]}, SCHEMA_FIELDS),
    "ProduceResponseV2": object_of(
        {
            "offsets": [
                object_of(
                    {
                        "partition": nullable("integer"),
                        "offset": nullable("long"),
                        "error_code": nullable("integer"),
                        "error": nullable("string"),
                    }
                )
            ],
            "key_schema_id": nullable("integer"),
            "value_schema_id": nullable("integer"),
        }
    ),
    "CreateConsumerInstanceRequest": object_of(
        None,
        {
            "name": nullable("string"),
            "format": nullable(one_of("binary", "json", "avro", "jsonschema", "protobuf")),
            "auto.offset.reset": nullable(one_of("earliest", "latest", "none")),
            "auto.commit.enable": {"type": ["string", "boolean", "null"]},
            "fetch.min.bytes": {"type": ["string", "integer", "null"]},
            "consumer.request.timeout.ms": {"type": ["string", "integer", "null"]},
        },
    ),
    "CreateConsumerInstanceResponse": object_of({"instance_id": "string", "base_uri": "string"}),
    "ConsumerSubscription": object_of(
        None,
        {
            "topics": {"type": ["array", "null"], "items": {"type": "string"}},
            "topic_pattern": nullable("string"),
        },
    ),
    "SubscribedTopics": object_of({"topics": ["string"]}),
    "ConsumerPartitions": object_of({"partitions": [object_of(PLACE)]}),
    "ConsumerOffsets": object_of({"offsets": [POSITION]}),
    "ConsumerSeek": object_of(
        None,
        {
            "offsets": [POSITION],
            "timestamps": [object_of({**PLACE, "timestamp": "string"}, {"metadata": nullable("string")})],
        },
    ),
    "ConsumerRecordV2": object_of({"topic": "string", **RECORD, "partition": "integer", "offset": "long"}),
}
