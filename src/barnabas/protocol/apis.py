"""The APIs of Kafka 4.3.1: keys, versions, which listeners serve them, which are forwarded.

Request and response classes are imported on first use.
Does not know: the handlers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib import import_module

from barnabas.protocol.message import Message
from barnabas.protocol.schema import Versions


class ApiKey(IntEnum):
    """The APIs of the protocol, including four that KRaft does not use any more."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


@dataclass(frozen=True, slots=True)
class Api:
    """One API: its versions, and which kinds of listeners serve it."""

    key: ApiKey
    versions: Versions
    broker: bool
    controller: bool
    forwardable: bool = False
    cluster_action: bool = False

    @property
    def name(self) -> str:
        """The name as in class names: `DescribeConfigs`."""
        return self.key.name.title().replace("_", "")

    @property
    def announced(self) -> Versions:
        """The versions in ApiVersions responses. Produce is announced from 0, because librdkafka checks that,
        but versions below 3 are refused."""
        return Versions(f"0-{self.versions.last}") if self.key == ApiKey.PRODUCE else self.versions


def broker(key: ApiKey, versions: str, *, forwardable: bool = False, cluster_action: bool = False) -> Api:
    return Api(key, Versions(versions), True, False, forwardable, cluster_action)


def controller(key: ApiKey, versions: str, *, forwardable: bool = False, cluster_action: bool = False) -> Api:
    return Api(key, Versions(versions), False, True, forwardable, cluster_action)


def both(key: ApiKey, versions: str, *, forwardable: bool = False, cluster_action: bool = False) -> Api:
    return Api(key, Versions(versions), True, True, forwardable, cluster_action)


APIS: dict[int, Api] = {
    api.key: api
    for api in (
        broker(ApiKey.PRODUCE, "3-13"),
        both(ApiKey.FETCH, "4-18"),
        broker(ApiKey.LIST_OFFSETS, "1-11"),
        broker(ApiKey.METADATA, "0-13"),
        broker(ApiKey.OFFSET_COMMIT, "2-10"),
        broker(ApiKey.OFFSET_FETCH, "1-10"),
        broker(ApiKey.FIND_COORDINATOR, "0-6"),
        broker(ApiKey.JOIN_GROUP, "0-9"),
        broker(ApiKey.HEARTBEAT, "0-4"),
        broker(ApiKey.LEAVE_GROUP, "0-5"),
        broker(ApiKey.SYNC_GROUP, "0-5"),
        broker(ApiKey.DESCRIBE_GROUPS, "0-6"),
        broker(ApiKey.LIST_GROUPS, "0-5"),
        both(ApiKey.SASL_HANDSHAKE, "0-1"),
        both(ApiKey.API_VERSIONS, "0-4"),
        both(ApiKey.CREATE_TOPICS, "2-7", forwardable=True),
        both(ApiKey.DELETE_TOPICS, "1-6", forwardable=True),
        broker(ApiKey.DELETE_RECORDS, "0-2"),
        broker(ApiKey.INIT_PRODUCER_ID, "0-5"),
        broker(ApiKey.OFFSET_FOR_LEADER_EPOCH, "2-4"),
        broker(ApiKey.ADD_PARTITIONS_TO_TXN, "0-5"),
        broker(ApiKey.ADD_OFFSETS_TO_TXN, "0-4"),
        broker(ApiKey.END_TXN, "0-5"),
        broker(ApiKey.WRITE_TXN_MARKERS, "1-2", cluster_action=True),
        broker(ApiKey.TXN_OFFSET_COMMIT, "0-5"),
        both(ApiKey.DESCRIBE_ACLS, "1-3"),
        both(ApiKey.CREATE_ACLS, "1-3", forwardable=True),
        both(ApiKey.DELETE_ACLS, "1-3", forwardable=True),
        both(ApiKey.DESCRIBE_CONFIGS, "1-4"),
        both(ApiKey.ALTER_CONFIGS, "0-2", forwardable=True),
        broker(ApiKey.ALTER_REPLICA_LOG_DIRS, "1-2"),
        broker(ApiKey.DESCRIBE_LOG_DIRS, "1-5"),
        both(ApiKey.SASL_AUTHENTICATE, "0-2"),
        both(ApiKey.CREATE_PARTITIONS, "0-3", forwardable=True),
        both(ApiKey.CREATE_DELEGATION_TOKEN, "1-3", forwardable=True),
        both(ApiKey.RENEW_DELEGATION_TOKEN, "1-2", forwardable=True),
        both(ApiKey.EXPIRE_DELEGATION_TOKEN, "1-2", forwardable=True),
        both(ApiKey.DESCRIBE_DELEGATION_TOKEN, "1-3"),
        broker(ApiKey.DELETE_GROUPS, "0-2"),
        both(ApiKey.ELECT_LEADERS, "0-2", forwardable=True),
        both(ApiKey.INCREMENTAL_ALTER_CONFIGS, "0-1", forwardable=True),
        both(ApiKey.ALTER_PARTITION_REASSIGNMENTS, "0-1", forwardable=True),
        both(ApiKey.LIST_PARTITION_REASSIGNMENTS, "0", forwardable=True),
        broker(ApiKey.OFFSET_DELETE, "0"),
        broker(ApiKey.DESCRIBE_CLIENT_QUOTAS, "0-1"),
        both(ApiKey.ALTER_CLIENT_QUOTAS, "0-1", forwardable=True),
        both(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "0"),
        both(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "0", forwardable=True),
        controller(ApiKey.VOTE, "0-2", cluster_action=True),
        controller(ApiKey.BEGIN_QUORUM_EPOCH, "0-1", cluster_action=True),
        controller(ApiKey.END_QUORUM_EPOCH, "0-1", cluster_action=True),
        both(ApiKey.DESCRIBE_QUORUM, "0-2", forwardable=True, cluster_action=True),
        controller(ApiKey.ALTER_PARTITION, "2-3", cluster_action=True),
        both(ApiKey.UPDATE_FEATURES, "0-2", forwardable=True, cluster_action=True),
        controller(ApiKey.ENVELOPE, "0", cluster_action=True),
        controller(ApiKey.FETCH_SNAPSHOT, "0-1"),
        both(ApiKey.DESCRIBE_CLUSTER, "0-2"),
        broker(ApiKey.DESCRIBE_PRODUCERS, "0"),
        controller(ApiKey.BROKER_REGISTRATION, "0-4", cluster_action=True),
        controller(ApiKey.BROKER_HEARTBEAT, "0-2", cluster_action=True),
        both(ApiKey.UNREGISTER_BROKER, "0", forwardable=True),
        broker(ApiKey.DESCRIBE_TRANSACTIONS, "0"),
        broker(ApiKey.LIST_TRANSACTIONS, "0-2"),
        controller(ApiKey.ALLOCATE_PRODUCER_IDS, "0", forwardable=True, cluster_action=True),
        broker(ApiKey.CONSUMER_GROUP_HEARTBEAT, "0-1"),
        broker(ApiKey.CONSUMER_GROUP_DESCRIBE, "0-1"),
        controller(ApiKey.CONTROLLER_REGISTRATION, "0"),
        broker(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, "0"),
        broker(ApiKey.PUSH_TELEMETRY, "0"),
        controller(ApiKey.ASSIGN_REPLICAS_TO_DIRS, "0"),
        broker(ApiKey.LIST_CONFIG_RESOURCES, "0-1"),
        broker(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "0"),
        broker(ApiKey.SHARE_GROUP_HEARTBEAT, "1"),
        broker(ApiKey.SHARE_GROUP_DESCRIBE, "1"),
        broker(ApiKey.SHARE_FETCH, "1-2"),
        broker(ApiKey.SHARE_ACKNOWLEDGE, "1-2"),
        both(ApiKey.ADD_RAFT_VOTER, "0-1", forwardable=True),
        both(ApiKey.REMOVE_RAFT_VOTER, "0", forwardable=True),
        controller(ApiKey.UPDATE_RAFT_VOTER, "0"),
        broker(ApiKey.INITIALIZE_SHARE_GROUP_STATE, "0", cluster_action=True),
        broker(ApiKey.READ_SHARE_GROUP_STATE, "0", cluster_action=True),
        broker(ApiKey.WRITE_SHARE_GROUP_STATE, "0-1", cluster_action=True),
        broker(ApiKey.DELETE_SHARE_GROUP_STATE, "0", cluster_action=True),
        broker(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, "0-1", cluster_action=True),
        broker(ApiKey.STREAMS_GROUP_HEARTBEAT, "0"),
        broker(ApiKey.STREAMS_GROUP_DESCRIBE, "0"),
        broker(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "0-1"),
        broker(ApiKey.ALTER_SHARE_GROUP_OFFSETS, "0"),
        broker(ApiKey.DELETE_SHARE_GROUP_OFFSETS, "0"),
    )
}
"""Every API in use, by key."""


@cache
def request_class(key: int) -> type[Message]:
    """The request class of an API; KeyError if there is none."""
    return message_class(key, "Request")


@cache
def response_class(key: int) -> type[Message]:
    """The response class of an API; KeyError if there is none."""
    return message_class(key, "Response")


def message_class(key: int, suffix: str) -> type[Message]:
    api = APIS[key]
    module = import_module(f"barnabas.protocol.messages.{api.key.name.lower()}")
    found: type[Message] = getattr(module, api.name + suffix)
    return found


def request_header_version(key: int, version: int) -> int:
    """2 for flexible versions, 1 for older ones."""
    return 2 if version in request_class(key).schema.flexible else 1


def response_header_version(key: int, version: int) -> int:
    """1 for flexible versions, 0 for older ones and always for ApiVersions (KIP-511)."""
    if key == ApiKey.API_VERSIONS:
        return 0
    return 1 if version in response_class(key).schema.flexible else 0
