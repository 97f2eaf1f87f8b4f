"""Requests of every API of a broker that needs a right, for callers that may or may not have it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.protocol import ApiKey

ASKED_ID = b"\x07" * 16
Asked = tuple[ApiKey, str, dict[str, Any]]


def of_topics(name: str) -> Iterator[Asked]:
    yield ApiKey.LIST_OFFSETS, "", {"topics": [{"name": name, "partitions": [{"timestamp": -1}]}]}
    yield ApiKey.DELETE_RECORDS, "", {"topics": [{"name": name, "partitions": [{"offset": -1}]}]}
    yield ApiKey.OFFSET_FOR_LEADER_EPOCH, "", {"topics": [{"topic": name, "partitions": [{"partition": 0}]}]}
    yield ApiKey.DESCRIBE_PRODUCERS, "", {"topics": [{"name": name, "partition_indexes": [0]}]}
    yield ApiKey.CREATE_PARTITIONS, "", {"topics": [{"name": name, "count": 5}], "validate_only": True}
    yield (
        ApiKey.CREATE_TOPICS,
        "",
        {
            "topics": [{"name": name, "num_partitions": 1, "replication_factor": 1}],
            "validate_only": True,
            "timeout_ms": 9000,
        },
    )
    yield ApiKey.DESCRIBE_TOPIC_PARTITIONS, "", {"topics": [{"name": name}], "response_partition_limit": 10}
    for kind, label in ((2, "topic"), (4, "broker"), (8, "loggers"), (16, "metrics"), (32, "group")):
        resource = {"resource_type": kind, "resource_name": "1" if kind in (4, 8) else name}
        few = resource | {"configuration_keys": ["cleanup.policy"]}
        yield ApiKey.DESCRIBE_CONFIGS, label, {"resources": [few]}
        yield ApiKey.INCREMENTAL_ALTER_CONFIGS, label, {"resources": [resource], "validate_only": True}
        if kind != 8:
            yield ApiKey.ALTER_CONFIGS, label, {"resources": [resource], "validate_only": True}


def of_groups(group: str, topic: str, topic_id: bytes) -> Iterator[Asked]:
    yield (
        ApiKey.JOIN_GROUP,
        "",
        {"group_id": group, "session_timeout_ms": 9000, "protocol_type": "consumer"},
    )
    yield ApiKey.HEARTBEAT, "", {"group_id": group, "member_id": "m"}
    yield ApiKey.LEAVE_GROUP, "", {"group_id": group, "member_id": "m", "members": [{"member_id": "m"}]}
    yield ApiKey.SYNC_GROUP, "without a protocol", {"group_id": group, "member_id": "m"}
    yield (
        ApiKey.SYNC_GROUP,
        "",
        {"group_id": group, "member_id": "m", "protocol_type": "consumer", "protocol_name": "range"},
    )
    yield ApiKey.DESCRIBE_GROUPS, "", {"groups": [group], "include_authorized_operations": True}
    yield ApiKey.DELETE_GROUPS, "", {"groups_names": [group]}
    yield (
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        "",
        {"group_ids": [group], "include_authorized_operations": True},
    )
    yield ApiKey.CONSUMER_GROUP_HEARTBEAT, "", {"group_id": group, "member_id": "m", "member_epoch": 5}
    yield (
        ApiKey.OFFSET_DELETE,
        "",
        {"group_id": group, "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}]},
    )
    committed = [{"name": topic, "topic_id": topic_id, "partitions": [{"committed_offset": 1}]}]
    yield ApiKey.OFFSET_COMMIT, "", {"group_id": group, "topics": committed}


def of_offsets(group: str, topic: str, topic_id: bytes, version: int) -> dict[str, Any]:
    named = [{"name": topic, "topic_id": topic_id, "partition_indexes": [0]}]
    if version < 8:
        return {"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}
    return {"groups": [{"group_id": group, "topics": named}]}


def of_transactions(name: str, group: str, topic: str) -> Iterator[Asked]:
    producer = {"producer_id": 5, "producer_epoch": 0}
    yield ApiKey.INIT_PRODUCER_ID, "", {"transactional_id": name, "transaction_timeout_ms": 9000}
    yield ApiKey.ADD_OFFSETS_TO_TXN, "", {"transactional_id": name, "group_id": group, **producer}
    yield ApiKey.END_TXN, "", {"transactional_id": name, **producer}
    yield ApiKey.DESCRIBE_TRANSACTIONS, "", {"transactional_ids": [name]}
    yield (
        ApiKey.TXN_OFFSET_COMMIT,
        "",
        {
            "transactional_id": name,
            "group_id": group,
            **producer,
            "topics": [{"name": topic, "partitions": [{"committed_offset": 1}]}],
        },
    )


def of_partitions_added(name: str, topics: list[str], version: int) -> dict[str, Any]:
    added = [{"name": topic, "partitions": [0]} for topic in topics]
    if version < 4:
        return {
            "v3_and_below_transactional_id": name,
            "v3_and_below_producer_id": 5,
            "v3_and_below_topics": added,
        }
    return {
        "transactions": [{"transactional_id": name, "producer_id": 5, "topics": added, "verify_only": True}]
    }


def of_cluster(topic: str) -> Iterator[Asked]:
    yield ApiKey.DESCRIBE_CLUSTER, "", {"include_cluster_authorized_operations": True}
    yield (
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        "",
        {"dirs": [{"path": "/nowhere", "topics": [{"name": topic, "partitions": [0, 1]}]}]},
    )
    yield ApiKey.ELECT_LEADERS, "", {"topic_partitions": [{"topic": topic, "partitions": [0]}]}
    yield (
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        "",
        {"topics": [{"name": topic, "partitions": [{"partition_index": 7, "replicas": None}]}]},
    )
    yield ApiKey.LIST_PARTITION_REASSIGNMENTS, "", {"topics": None}
    yield ApiKey.DESCRIBE_CLIENT_QUOTAS, "", {"components": [], "strict": True}
    yield (
        ApiKey.ALTER_CLIENT_QUOTAS,
        "",
        {
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": "u"}],
                    "ops": [{"key": "producer_byte_rate", "value": 1e9}],
                }
            ],
            "validate_only": True,
        },
    )
    yield ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "", {"users": [{"name": "nobody"}]}
    yield ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "", {"deletions": [{"name": "no", "mechanism": 1}]}
    yield ApiKey.DESCRIBE_QUORUM, "", {"topics": []}
    yield ApiKey.UPDATE_FEATURES, "", {"feature_updates": [], "validate_only": True}
    yield ApiKey.UNREGISTER_BROKER, "", {"broker_id": 99}
    yield ApiKey.LIST_CONFIG_RESOURCES, "", {"resource_types": [16]}
    yield ApiKey.ADD_RAFT_VOTER, "", {"voter_id": 99, "timeout_ms": 1000}
    yield ApiKey.REMOVE_RAFT_VOTER, "", {"voter_id": 99}
    yield (
        ApiKey.WRITE_TXN_MARKERS,
        "",
        {
            "markers": [
                {
                    "producer_id": 5,
                    "topics": [{"name": topic, "partition_indexes": [0]}],
                    "coordinator_epoch": 1,
                }
            ]
        },
    )
