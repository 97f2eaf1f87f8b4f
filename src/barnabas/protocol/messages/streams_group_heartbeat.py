"""StreamsGroupHeartbeat: a member of a streams group joins, stays or leaves."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bool, Int8, Int16, Int32, Int64, String, UInt16


class StreamsGroupHeartbeatRequest(Message, key=88, versions="0", flexible="0+"):
    class KeyValue(Struct):
        key: String = ""
        value: String = ""

    class TopicInfo(Struct):
        name: String = ""
        partitions: Int32 = 0
        replication_factor: Int16 = 0
        topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue] = []

    class Endpoint(Struct):
        host: String = ""
        port: UInt16 = 0

    class TaskOffset(Struct):
        subtopology_id: String = ""
        partition: Int32 = 0
        offset: Int64 = 0

    class TaskIds(Struct):
        subtopology_id: String = ""
        partitions: list[Int32] = []

    class Topology(Struct):
        class Subtopology(Struct):
            class CopartitionGroup(Struct):
                source_topics: list[Int16] = []
                source_topic_regex: list[Int16] = []
                repartition_source_topics: list[Int16] = []

            subtopology_id: String = ""
            source_topics: list[String] = []
            source_topic_regex: list[String] = []
            state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = []
            repartition_sink_topics: list[String] = []
            repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = []
            copartition_groups: list[CopartitionGroup] = []

        epoch: Int32 = 0
        subtopologies: list[Subtopology] = []

    group_id: String = ""
    member_id: String = ""
    member_epoch: Int32 = 0
    endpoint_information_epoch: Int32 = 0
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    topology: Topology | None = None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: String | None = None
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: Bool = False


class StreamsGroupHeartbeatResponse(Message, key=88, versions="0", flexible="0+"):
    class Status(Struct):
        status_code: Int8 = 0
        status_detail: String = ""

    class TopicPartition(Struct):
        topic: String = ""
        partitions: list[Int32] = []

    class TaskIds(Struct):
        subtopology_id: String = ""
        partitions: list[Int32] = []

    class Endpoint(Struct):
        host: String = ""
        port: UInt16 = 0

    class EndpointToPartitions(Struct):
        user_endpoint: StreamsGroupHeartbeatResponse.Endpoint = since("0+")
        active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = []
        standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = []

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String = ""
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    acceptable_recovery_lag: Int32 = 0
    task_offset_interval_ms: Int32 = 0
    status: list[Status] | None = []
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    endpoint_information_epoch: Int32 = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
