"""JSON Schemas of v3's requests and responses, for the description of the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.rest.v3.vocabulary import (
    CONFIG_SOURCES,
    FORMAT_NAMES,
    GROUP_STATES,
    GROUP_TYPES,
    OPERATION_WORDS,
    PATTERN_TYPE_WORDS,
    PERMISSION_WORDS,
    RESOURCE_TYPE_WORDS,
    STRATEGY_NAMES,
)
from barnabas.services.openapi import Failure, Schema, nullable, object_of, one_of

PATH_TYPES: Mapping[str, Schema] = {
    "partition_id": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
    "broker_id": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
}
OTHER_CLUSTER = Failure(404, 404, "the cluster id is not the one served")
NOT_THERE = Failure(404, 404, "there is no such resource")
NO_TOPIC = Failure(404, 40403, "unknown topic or partition")
REFUSED = Failure(400, 40002, "the broker refused it")
BAD_BODY = Failure(400, 400, "the body is no JSON, or a field has another type")
INCOMPLETE = Failure(422, 42206, "the body is empty, or a field is missing")
WRITES = (OTHER_CLUSTER, REFUSED, BAD_BODY, INCOMPLETE, Failure(422, 422, "the body has an unknown field"))

RELATED = "Relationship"
METADATA = object_of({"self": "string"}, {"resource_name": nullable("string")})
LIST_METADATA = object_of({"self": "string"}, {"next": nullable("string")})


def resource(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> dict[str, Any]:
    fixed: dict[str, Schema] = {"kind": "string", "metadata": METADATA, "cluster_id": "string"}
    return object_of({**fixed, **required}, optional)


def with_lists(resources: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    lists = {
        f"{name}List": object_of({"kind": "string", "metadata": LIST_METADATA, "data": [name]})
        for name in resources
    }
    return {**resources, **lists}


CONFIG: dict[str, Schema] = {
    "name": "string",
    "is_default": "boolean",
    "is_read_only": "boolean",
    "is_sensitive": "boolean",
    "source": "ConfigSource",
    "synonyms": ["ConfigSynonymData"],
}
VALUE: dict[str, Schema] = {"value": nullable("string")}
ACL: dict[str, Schema] = {
    "resource_type": "AclResourceType",
    "resource_name": "string",
    "pattern_type": "AclPatternType",
    "principal": "string",
    "host": "string",
    "operation": "AclOperation",
    "permission": "AclPermission",
}
RECORD: dict[str, Schema] = {
    "partition_id": nullable("integer"),
    "headers": ["ProduceRequestHeader"],
    "key": "ProduceRequestData",
    "value": "ProduceRequestData",
    "timestamp": nullable({"type": "string", "format": "date-time"}),
}
RECORD_RESULT: dict[str, Schema] = {
    "cluster_id": "string",
    "topic_name": "string",
    "partition_id": "integer",
    "offset": "long",
    "timestamp": nullable("string"),
    "key": "ProduceResponseData",
    "value": "ProduceResponseData",
}

RESOURCES = {
    "ClusterData": resource(
        {
            "acls": RELATED,
            "brokers": RELATED,
            "broker_configs": RELATED,
            "consumer_groups": RELATED,
            "topics": RELATED,
            "partition_reassignments": RELATED,
        },
        {"controller": RELATED},
    ),
    "BrokerData": resource(
        {"broker_id": "integer", "configs": RELATED, "partition_replicas": RELATED},
        {"host": nullable("string"), "port": nullable("integer"), "rack": nullable("string")},
    ),
    "BrokerConfigData": resource({**CONFIG, "broker_id": "integer"}, VALUE),
    "ClusterConfigData": resource({**CONFIG, "config_type": one_of("BROKER")}, VALUE),
    "TopicConfigData": resource({**CONFIG, "topic_name": "string"}, VALUE),
    "TopicData": resource(
        {
            "topic_name": "string",
            "is_internal": "boolean",
            "replication_factor": "integer",
            "partitions_count": "integer",
            "partitions": RELATED,
            "configs": RELATED,
            "partition_reassignments": RELATED,
        },
        {"authorized_operations": ["string"]},
    ),
    "PartitionData": resource(
        {"topic_name": "string", "partition_id": "integer", "replicas": RELATED, "reassignment": RELATED},
        {"leader": RELATED},
    ),
    "ReplicaData": resource(
        {
            "topic_name": "string",
            "partition_id": "integer",
            "broker_id": "integer",
            "is_leader": "boolean",
            "is_in_sync": "boolean",
            "broker": RELATED,
        }
    ),
    "ReassignmentData": resource(
        {
            "topic_name": "string",
            "partition_id": "integer",
            "adding_replicas": ["integer"],
            "removing_replicas": ["integer"],
            "replicas": RELATED,
        }
    ),
    "AclData": resource(ACL),
    "ConsumerGroupData": resource(
        {
            "consumer_group_id": "string",
            "is_simple": "boolean",
            "partition_assignor": "string",
            "state": one_of(*GROUP_STATES),
            "type": one_of(*GROUP_TYPES),
            "is_mixed_consumer_group": "boolean",
            "coordinator": RELATED,
            "consumers": RELATED,
            "lag_summary": RELATED,
        }
    ),
    "ConsumerData": resource(
        {
            "consumer_group_id": "string",
            "consumer_id": "string",
            "client_id": "string",
            "assignments": RELATED,
        },
        {"instance_id": nullable("string")},
    ),
    "ConsumerAssignmentData": resource(
        {
            "consumer_group_id": "string",
            "consumer_id": "string",
            "topic_name": "string",
            "partition_id": "integer",
            "partition": RELATED,
            "lag": RELATED,
        }
    ),
    "ConsumerLagData": resource(
        {
            "consumer_group_id": "string",
            "topic_name": "string",
            "partition_id": "integer",
            "current_offset": "long",
            "log_end_offset": "long",
            "lag": "long",
            "consumer_id": "string",
            "client_id": "string",
        },
        {"instance_id": nullable("string")},
    ),
}

SCHEMAS: dict[str, dict[str, Any]] = {
    RELATED: object_of({"related": "string"}),
    "ConfigSource": one_of(*CONFIG_SOURCES.values()),
    "ConfigSynonymData": object_of({"name": "string", "source": "ConfigSource"}, VALUE),
    "AclResourceType": one_of(*RESOURCE_TYPE_WORDS),
    "AclPatternType": one_of(*PATTERN_TYPE_WORDS),
    "AclOperation": one_of(*OPERATION_WORDS),
    "AclPermission": one_of(*PERMISSION_WORDS),
    **with_lists(RESOURCES),
    "PartitionWithOffsetsData": resource(
        {"topic_name": "string", "partition_id": "integer"},
        {"earliest_offset": "long", "latest_offset": "long"},
    ),
    "ConsumerGroupLagSummaryData": resource(
        {
            "consumer_group_id": "string",
            "max_lag_consumer_id": "string",
            "max_lag_client_id": "string",
            "max_lag_topic_name": "string",
            "max_lag_partition_id": "integer",
            "max_lag": "long",
            "total_lag": "long",
            "max_lag_consumer": RELATED,
            "max_lag_partition": RELATED,
        },
        {"max_lag_instance_id": nullable("string")},
    ),
    "DeletedAcls": object_of({"data": ["AclData"]}),
    "CreateAclRequestData": object_of(ACL, closed=True),
    "CreateAclRequestDataList": object_of({"data": ["CreateAclRequestData"]}, closed=True),
    "UpdateConfigRequestData": object_of(None, VALUE, closed=True),
    "AlterConfigData": object_of(
        {"name": "string"}, {**VALUE, "operation": nullable(one_of("SET", "DELETE"))}, closed=True
    ),
    "AlterConfigBatchRequestData": object_of(
        {"data": ["AlterConfigData"]}, {"validate_only": "boolean"}, closed=True
    ),
    "NewTopicConfig": object_of({"name": "string"}, VALUE, closed=True),
    "CreateTopicRequestData": object_of(
        {"topic_name": "string"},
        {
            "partitions_count": nullable("integer"),
            "replication_factor": nullable("integer"),
            "replicas_assignments": {
                "type": ["object", "null"],
                "additionalProperties": {"type": "array", "items": {"type": "integer"}},
            },
            "configs": ["NewTopicConfig"],
            "validate_only": "boolean",
        },
        closed=True,
    ),
    "UpdatePartitionCountRequestData": object_of({"partitions_count": "integer"}, closed=True),
    "ProduceRequestHeader": object_of({"name": "string"}, VALUE, closed=True),
    "ProduceRequestData": {
        **object_of(
            None,
            {
                "type": one_of(*FORMAT_NAMES),
                "subject": nullable("string"),
                "subject_name_strategy": nullable(one_of(*STRATEGY_NAMES)),
                "schema_id": nullable("integer"),
                "schema_version": nullable("integer"),
                "schema": nullable("string"),
                "data": "any",
            },
            closed=True,
        ),
        "type": ["object", "null"],
    },
    "ProduceRequest": object_of(None, RECORD, closed=True),
    "ProduceResponseData": object_of(
        {"size": "integer", "type": nullable("string")},
        {
            "subject": nullable("string"),
            "schema_id": nullable("integer"),
            "schema_version": nullable("integer"),
        },
    ),
    "ProduceResponse": object_of({"error_code": "integer"}, {"message": "string", **RECORD_RESULT}),
    "ProduceBatchRequestEntry": object_of({"id": "string"}, RECORD, closed=True),
    "ProduceBatchRequest": object_of({"entries": ["ProduceBatchRequestEntry"]}, closed=True),
    "ProduceBatchResponseSuccessEntry": object_of({"id": "string"}, RECORD_RESULT),
    "ProduceBatchResponseFailureEntry": object_of(
        {"id": "string", "error_code": "integer"}, {"message": "string"}
    ),
    "ProduceBatchResponse": object_of(
        {
            "successes": ["ProduceBatchResponseSuccessEntry"],
            "failures": ["ProduceBatchResponseFailureEntry"],
        }
    ),
}
