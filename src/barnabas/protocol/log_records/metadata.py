"""Records of the metadata log, `__cluster_metadata`.

In the log, each record follows three unsigned varints: frame version (1), type (`key` here) and version.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since, tag
from barnabas.protocol.types import (
    NULL_UUID,
    Bool,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    UInt16,
    Uuid,
)


class RegisterBrokerRecord(Message, key=0, versions="0-4", flexible="0+"):
    class BrokerEndpoint(Struct):
        name: String = ""
        host: String = ""
        port: UInt16 = 0
        security_protocol: Int16 = 0

    class BrokerFeature(Struct):
        name: String = ""
        min_supported_version: Int16 = 0
        max_supported_version: Int16 = 0

    broker_id: Int32 = 0
    is_migrating_zk_broker: Bool = since("2+", False)
    incarnation_id: Uuid = NULL_UUID
    broker_epoch: Int64 = 0
    end_points: list[BrokerEndpoint] = []
    features: list[BrokerFeature] = []
    rack: String | None = ""
    fenced: Bool = True
    in_controlled_shutdown: Bool = since("1+", False)
    log_dirs: list[Uuid] = tag(0, "3+", [])
    cordoned_log_dirs: list[Uuid] | None = tag(1, "4+", None)


class UnregisterBrokerRecord(Message, key=1, versions="0", flexible="0+"):
    broker_id: Int32 = 0
    broker_epoch: Int64 = 0


class TopicRecord(Message, key=2, versions="0", flexible="0+"):
    name: String = ""
    topic_id: Uuid = NULL_UUID


class PartitionRecord(Message, key=3, versions="0-2", flexible="0+"):
    partition_id: Int32 = -1
    topic_id: Uuid = NULL_UUID
    replicas: list[Int32] = []
    isr: list[Int32] = []
    removing_replicas: list[Int32] = []
    adding_replicas: list[Int32] = []
    leader: Int32 = -1
    leader_recovery_state: Int8 = tag(0, "0+", 0)
    leader_epoch: Int32 = -1
    partition_epoch: Int32 = -1
    directories: list[Uuid] = since("1+", [])
    eligible_leader_replicas: list[Int32] | None = tag(1, "2+", None)
    last_known_elr: list[Int32] | None = tag(2, "2+", None)


class ConfigRecord(Message, key=4, versions="0", flexible="0+"):
    resource_type: Int8 = 0
    resource_name: String = ""
    name: String = ""
    value: String | None = ""


class PartitionChangeRecord(Message, key=5, versions="0-2", flexible="0+"):
    partition_id: Int32 = -1
    topic_id: Uuid = NULL_UUID
    isr: list[Int32] | None = tag(0, "0+", None)
    leader: Int32 = tag(1, "0+", -2)
    replicas: list[Int32] | None = tag(2, "0+", None)
    removing_replicas: list[Int32] | None = tag(3, "0+", None)
    adding_replicas: list[Int32] | None = tag(4, "0+", None)
    leader_recovery_state: Int8 = tag(5, "0+", -1)
    directories: list[Uuid] | None = tag(8, "1+", None)
    eligible_leader_replicas: list[Int32] | None = tag(6, "2+", None)
    last_known_elr: list[Int32] | None = tag(7, "2+", None)


class FenceBrokerRecord(Message, key=7, versions="0", flexible="0+"):
    id: Int32 = 0
    epoch: Int64 = 0


class UnfenceBrokerRecord(Message, key=8, versions="0", flexible="0+"):
    id: Int32 = 0
    epoch: Int64 = 0


class RemoveTopicRecord(Message, key=9, versions="0", flexible="0+"):
    topic_id: Uuid = NULL_UUID


class DelegationTokenRecord(Message, key=10, versions="0", flexible="0+"):
    owner: String = ""
    requester: String = ""
    renewers: list[String] = []
    issue_timestamp: Int64 = 0
    max_timestamp: Int64 = 0
    expiration_timestamp: Int64 = 0
    token_id: String = ""


class UserScramCredentialRecord(Message, key=11, versions="0", flexible="0+"):
    name: String = ""
    mechanism: Int8 = 0
    salt: Bytes = b""
    stored_key: Bytes = b""
    server_key: Bytes = b""
    iterations: Int32 = 0


class FeatureLevelRecord(Message, key=12, versions="0", flexible="0+"):
    name: String = ""
    feature_level: Int16 = 0


class ClientQuotaRecord(Message, key=14, versions="0", flexible="0+"):
    class EntityData(Struct):
        entity_type: String = ""
        entity_name: String | None = ""

    entity: list[EntityData] = []
    key: String = ""
    value: Float64 = 0.0
    remove: Bool = False


class ProducerIdsRecord(Message, key=15, versions="0", flexible="0+"):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    next_producer_id: Int64 = 0


class BrokerRegistrationChangeRecord(Message, key=17, versions="0-3", flexible="0+"):
    broker_id: Int32 = 0
    broker_epoch: Int64 = 0
    fenced: Int8 = tag(0, "0+", 0)
    in_controlled_shutdown: Int8 = tag(1, "1+", 0)
    log_dirs: list[Uuid] = tag(2, "2+", [])
    cordoned_log_dirs: list[Uuid] | None = tag(3, "3+", None)


class AccessControlEntryRecord(Message, key=18, versions="0", flexible="0+"):
    id: Uuid = NULL_UUID
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = 0
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class RemoveAccessControlEntryRecord(Message, key=19, versions="0", flexible="0+"):
    id: Uuid = NULL_UUID


class NoOpRecord(Message, key=20, versions="0", flexible="0+"):
    pass


class ZkMigrationStateRecord(Message, key=21, versions="0", flexible="0+"):
    zk_migration_state: Int8 = 0


class RemoveUserScramCredentialRecord(Message, key=22, versions="0", flexible="0+"):
    name: String = ""
    mechanism: Int8 = 0


class BeginTransactionRecord(Message, key=23, versions="0", flexible="0+"):
    name: String | None = tag(0, "0+", None)


class EndTransactionRecord(Message, key=24, versions="0", flexible="0+"):
    pass


class AbortTransactionRecord(Message, key=25, versions="0", flexible="0+"):
    reason: String | None = tag(0, "0+", None)


class RemoveDelegationTokenRecord(Message, key=26, versions="0", flexible="0+"):
    token_id: String = ""


class RegisterControllerRecord(Message, key=27, versions="0", flexible="0+"):
    class ControllerEndpoint(Struct):
        name: String = ""
        host: String = ""
        port: UInt16 = 0
        security_protocol: Int16 = 0

    class ControllerFeature(Struct):
        name: String = ""
        min_supported_version: Int16 = 0
        max_supported_version: Int16 = 0

    controller_id: Int32 = 0
    incarnation_id: Uuid = NULL_UUID
    zk_migration_ready: Bool = False
    end_points: list[ControllerEndpoint] = []
    features: list[ControllerFeature] = []


class ClearElrRecord(Message, key=28, versions="0", flexible="0+"):
    topic_name: String = ""
