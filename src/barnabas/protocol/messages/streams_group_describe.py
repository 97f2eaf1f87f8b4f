"""StreamsGroupDescribe: topology, members and tasks of streams groups."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bool, Int16, Int32, Int64, String, UInt16


class StreamsGroupDescribeRequest(Message, key=89, versions="0", flexible="0+"):
    group_ids: list[String] = []
    include_authorized_operations: Bool = False


class StreamsGroupDescribeResponse(Message, key=89, versions="0", flexible="0+"):
    class Endpoint(Struct):
        host: String = ""
        port: UInt16 = 0

    class TaskOffset(Struct):
        subtopology_id: String = ""
        partition: Int32 = 0
        offset: Int64 = 0

    class Assignment(Struct):
        active_tasks: list[StreamsGroupDescribeResponse.TaskIds] = []
        standby_tasks: list[StreamsGroupDescribeResponse.TaskIds] = []
        warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds] = []

    class TaskIds(Struct):
        subtopology_id: String = ""
        partitions: list[Int32] = []

    class KeyValue(Struct):
        key: String = ""
        value: String = ""

    class TopicInfo(Struct):
        name: String = ""
        partitions: Int32 = 0
        replication_factor: Int16 = 0
        topic_configs: list[StreamsGroupDescribeResponse.KeyValue] = []

    class DescribedGroup(Struct):
        class Topology(Struct):
            class Subtopology(Struct):
                subtopology_id: String = ""
                source_topics: list[String] = []
                repartition_sink_topics: list[String] = []
                state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo] = []
                repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo] = []

            epoch: Int32 = 0
            subtopologies: list[Subtopology] | None = None

        class Member(Struct):
            member_id: String = ""
            member_epoch: Int32 = 0
            instance_id: String | None = None
            rack_id: String | None = None
            client_id: String = ""
            client_host: String = ""
            topology_epoch: Int32 = 0
            process_id: String = ""
            user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = None
            client_tags: list[StreamsGroupDescribeResponse.KeyValue] = []
            task_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = []
            task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = []
            assignment: StreamsGroupDescribeResponse.Assignment = since("0+")
            target_assignment: StreamsGroupDescribeResponse.Assignment = since("0+")
            is_classic: Bool = False

        error_code: Int16 = 0
        error_message: String | None = None
        group_id: String = ""
        group_state: String = ""
        group_epoch: Int32 = 0
        assignment_epoch: Int32 = 0
        topology: Topology | None = None
        members: list[Member] = []
        authorized_operations: Int32 = -(2**31)

    throttle_time_ms: Int32 = 0
    groups: list[DescribedGroup] = []
