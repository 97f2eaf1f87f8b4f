"""Records of `__consumer_offsets`: committed offsets, and the state of all kinds of groups.

Each key follows two bytes with the record type (`key` here). Each value follows two bytes with its version.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since, tag
from barnabas.protocol.types import NULL_UUID, Bytes, Int8, Int16, Int32, Int64, String, UInt16, Uuid


class LegacyOffsetCommitKey(Message, key=0, versions="0"):
    group: String = since("0", "")
    topic: String = since("0", "")
    partition: Int32 = since("0", 0)


class LegacyOffsetCommitValue(Message, key=0, versions="0"):
    offset: Int64 = since("0", 0)
    metadata: String = since("0", "")
    commit_timestamp: Int64 = since("0", 0)


class OffsetCommitKey(Message, key=1, versions="0"):
    group: String = since("0", "")
    topic: String = since("0", "")
    partition: Int32 = since("0", 0)


class OffsetCommitValue(Message, key=1, versions="0-4", flexible="4+"):
    offset: Int64 = 0
    leader_epoch: Int32 = since("3+", -1, ignorable=True)
    metadata: String = ""
    commit_timestamp: Int64 = 0
    expire_timestamp: Int64 = since("1", -1, ignorable=True)
    topic_id: Uuid = tag(0, "4+", NULL_UUID, ignorable=True)


class GroupMetadataKey(Message, key=2, versions="0"):
    group: String = since("0", "")


class GroupMetadataValue(Message, key=2, versions="0-4", flexible="4+"):
    class MemberMetadata(Struct):
        member_id: String = ""
        group_instance_id: String | None = since("3+", None, ignorable=True)
        client_id: String = ""
        client_host: String = ""
        rebalance_timeout: Int32 = since("1+", -1, ignorable=True)
        session_timeout: Int32 = 0
        subscription: Bytes = b""
        assignment: Bytes = b""

    protocol_type: String = ""
    generation: Int32 = 0
    protocol: String | None = ""
    leader: String | None = ""
    current_state_timestamp: Int64 = since("2+", -1, ignorable=True)
    members: list[MemberMetadata] = []


class ConsumerGroupMetadataKey(Message, key=3, versions="0"):
    group_id: String = since("0", "")


class ConsumerGroupMetadataValue(Message, key=3, versions="0", flexible="0+"):
    epoch: Int32 = 0
    metadata_hash: Int64 = tag(0, "0+", 0)


class ConsumerGroupPartitionMetadataKey(Message, key=4, versions="0"):
    group_id: String = since("0", "")


class ConsumerGroupPartitionMetadataValue(Message, key=4, versions="0", flexible="0+"):
    class TopicMetadata(Struct):
        class PartitionMetadata(Struct):
            partition: Int32 = 0
            racks: list[String] = []

        topic_id: Uuid = NULL_UUID
        topic_name: String = ""
        num_partitions: Int32 = 0
        partition_metadata: list[PartitionMetadata] = []

    topics: list[TopicMetadata] = []


class ConsumerGroupMemberMetadataKey(Message, key=5, versions="0"):
    group_id: String = since("0", "")
    member_id: String = since("0", "")


class ConsumerGroupMemberMetadataValue(Message, key=5, versions="0", flexible="0+"):
    class ClassicMemberMetadata(Struct):
        class ClassicProtocol(Struct):
            name: String = ""
            metadata: Bytes = b""

        session_timeout_ms: Int32 = 0
        supported_protocols: list[ClassicProtocol] = []

    instance_id: String | None = ""
    rack_id: String | None = ""
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: list[String] = []
    subscribed_topic_regex: String | None = ""
    rebalance_timeout_ms: Int32 = -1
    server_assignor: String | None = ""
    classic_member_metadata: ClassicMemberMetadata | None = tag(0, "0+")


class ConsumerGroupTargetAssignmentMetadataKey(Message, key=6, versions="0"):
    group_id: String = since("0", "")


class ConsumerGroupTargetAssignmentMetadataValue(Message, key=6, versions="0", flexible="0+"):
    assignment_epoch: Int32 = 0
    assignment_timestamp: Int64 = tag(0, "0+", 0, ignorable=True)


class ConsumerGroupTargetAssignmentMemberKey(Message, key=7, versions="0"):
    group_id: String = since("0", "")
    member_id: String = since("0", "")


class ConsumerGroupTargetAssignmentMemberValue(Message, key=7, versions="0", flexible="0+"):
    class TopicPartition(Struct):
        topic_id: Uuid = NULL_UUID
        partitions: list[Int32] = []

    topic_partitions: list[TopicPartition] = []


class ConsumerGroupCurrentMemberAssignmentKey(Message, key=8, versions="0"):
    group_id: String = since("0", "")
    member_id: String = since("0", "")


class ConsumerGroupCurrentMemberAssignmentValue(Message, key=8, versions="0", flexible="0+"):
    class TopicPartitions(Struct):
        topic_id: Uuid = NULL_UUID
        partitions: list[Int32] = []
        assignment_epochs: list[Int32] | None = tag(0, "0+", [])

    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    assigned_partitions: list[TopicPartitions] = []
    partitions_pending_revocation: list[TopicPartitions] = []


class ShareGroupMemberMetadataKey(Message, key=10, versions="0"):
    group_id: String = since("0", "")
    member_id: String = since("0", "")


class ShareGroupMemberMetadataValue(Message, key=10, versions="0", flexible="0+"):
    rack_id: String | None = ""
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: list[String] = []


class ShareGroupMetadataKey(Message, key=11, versions="0"):
    group_id: String = since("0", "")


class ShareGroupMetadataValue(Message, key=11, versions="0", flexible="0+"):
    epoch: Int32 = 0
    metadata_hash: Int64 = 0


class ShareGroupTargetAssignmentMetadataKey(Message, key=12, versions="0"):
    group_id: String = since("0", "")


class ShareGroupTargetAssignmentMetadataValue(Message, key=12, versions="0", flexible="0+"):
    assignment_epoch: Int32 = 0
    assignment_timestamp: Int64 = tag(0, "0+", 0, ignorable=True)


class ShareGroupTargetAssignmentMemberKey(Message, key=13, versions="0"):
    group_id: String = since("0", "")
    member_id: String = since("0", "")


class ShareGroupTargetAssignmentMemberValue(Message, key=13, versions="0", flexible="0+"):
    class TopicPartition(Struct):
        topic_id: Uuid = NULL_UUID
        partitions: list[Int32] = []

    topic_partitions: list[TopicPartition] = []


class ShareGroupCurrentMemberAssignmentKey(Message, key=14, versions="0"):
    group_id: String = since("0", "")
    member_id: String = since("0", "")


class ShareGroupCurrentMemberAssignmentValue(Message, key=14, versions="0", flexible="0+"):
    class TopicPartitions(Struct):
        topic_id: Uuid = NULL_UUID
        partitions: list[Int32] = []

    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    assigned_partitions: list[TopicPartitions] = []


class ShareGroupStatePartitionMetadataKey(Message, key=15, versions="0"):
    group_id: String = since("0", "")


class ShareGroupStatePartitionMetadataValue(Message, key=15, versions="0", flexible="0+"):
    class TopicPartitionsInfo(Struct):
        topic_id: Uuid = NULL_UUID
        topic_name: String = ""
        partitions: list[Int32] = []

    class TopicInfo(Struct):
        topic_id: Uuid = NULL_UUID
        topic_name: String = ""

    initializing_topics: list[TopicPartitionsInfo] = []
    initialized_topics: list[TopicPartitionsInfo] = []
    deleting_topics: list[TopicInfo] = []


class ConsumerGroupRegularExpressionKey(Message, key=16, versions="0"):
    group_id: String = since("0", "")
    regular_expression: String = since("0", "")


class ConsumerGroupRegularExpressionValue(Message, key=16, versions="0", flexible="0+"):
    topics: list[String] = []
    version: Int64 = 0
    timestamp: Int64 = 0


class StreamsGroupMetadataKey(Message, key=17, versions="0"):
    group_id: String = since("0", "")


class StreamsGroupMetadataValue(Message, key=17, versions="0", flexible="0+"):
    class LastAssignmentConfig(Struct):
        key: String = ""
        value: String = ""

    epoch: Int32 = 0
    metadata_hash: Int64 = 0
    validated_topology_epoch: Int32 = tag(0, "0+", -1)
    last_assignment_configs: list[LastAssignmentConfig] | None = tag(1, "0+", [])


class StreamsGroupMemberMetadataKey(Message, key=19, versions="0"):
    group_id: String = since("0", "")
    member_id: String = since("0", "")


class StreamsGroupMemberMetadataValue(Message, key=19, versions="0", flexible="0+"):
    class Endpoint(Struct):
        host: String = ""
        port: UInt16 = 0

    class KeyValue(Struct):
        key: String = ""
        value: String = ""

    instance_id: String | None = ""
    rack_id: String | None = ""
    client_id: String = ""
    client_host: String = ""
    rebalance_timeout_ms: Int32 = -1
    topology_epoch: Int32 = 0
    process_id: String = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = []


class StreamsGroupTargetAssignmentMetadataKey(Message, key=20, versions="0"):
    group_id: String = since("0", "")


class StreamsGroupTargetAssignmentMetadataValue(Message, key=20, versions="0", flexible="0+"):
    assignment_epoch: Int32 = 0
    assignment_timestamp: Int64 = tag(0, "0+", 0, ignorable=True)


class StreamsGroupTargetAssignmentMemberKey(Message, key=21, versions="0"):
    group_id: String = since("0", "")
    member_id: String = since("0", "")


class StreamsGroupTargetAssignmentMemberValue(Message, key=21, versions="0", flexible="0+"):
    class TaskIds(Struct):
        subtopology_id: String = ""
        partitions: list[Int32] = []

    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []


class StreamsGroupCurrentMemberAssignmentKey(Message, key=22, versions="0"):
    group_id: String = since("0", "")
    member_id: String = since("0", "")


class StreamsGroupCurrentMemberAssignmentValue(Message, key=22, versions="0", flexible="0+"):
    class TaskIds(Struct):
        subtopology_id: String = ""
        partitions: list[Int32] = []
        assignment_epochs: list[Int32] | None = tag(0, "0+", [])

    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []
    active_tasks_pending_revocation: list[TaskIds] = []
    standby_tasks_pending_revocation: list[TaskIds] = []
    warmup_tasks_pending_revocation: list[TaskIds] = []


class StreamsGroupTopologyKey(Message, key=23, versions="0"):
    group_id: String = since("0", "")


class StreamsGroupTopologyValue(Message, key=23, versions="0", flexible="0+"):
    class TopicConfig(Struct):
        key: String = ""
        value: String = ""

    class TopicInfo(Struct):
        name: String = ""
        partitions: Int32 = 0
        replication_factor: Int16 = 0
        topic_configs: list[StreamsGroupTopologyValue.TopicConfig] = []

    class Subtopology(Struct):
        class CopartitionGroup(Struct):
            source_topics: list[Int16] = []
            source_topic_regex: list[Int16] = []
            repartition_source_topics: list[Int16] = []

        subtopology_id: String = ""
        source_topics: list[String] = []
        source_topic_regex: list[String] = []
        state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo] = []
        repartition_sink_topics: list[String] = []
        repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo] = []
        copartition_groups: list[CopartitionGroup] = []

    epoch: Int32 = 0
    subtopologies: list[Subtopology] = []
