"""ConsumerGroupDescribe: members and assignments of groups with the new protocol (KIP-848)."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import NULL_UUID, Bool, Int8, Int16, Int32, String, Uuid


class ConsumerGroupDescribeRequest(Message, key=69, versions="0-1", flexible="0+"):
    group_ids: list[String] = []
    include_authorized_operations: Bool = False


class ConsumerGroupDescribeResponse(Message, key=69, versions="0-1", flexible="0+"):
    class TopicPartitions(Struct):
        topic_id: Uuid = NULL_UUID
        topic_name: String = ""
        partitions: list[Int32] = []

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions] = []

    class DescribedGroup(Struct):
        class Member(Struct):
            member_id: String = ""
            instance_id: String | None = None
            rack_id: String | None = None
            member_epoch: Int32 = 0
            client_id: String = ""
            client_host: String = ""
            subscribed_topic_names: list[String] = []
            subscribed_topic_regex: String | None = None
            assignment: ConsumerGroupDescribeResponse.Assignment = since("0+")
            target_assignment: ConsumerGroupDescribeResponse.Assignment = since("0+")
            member_type: Int8 = since("1+", -1, ignorable=True)

        error_code: Int16 = 0
        error_message: String | None = None
        group_id: String = ""
        group_state: String = ""
        group_epoch: Int32 = 0
        assignment_epoch: Int32 = 0
        assignor_name: String = ""
        members: list[Member] = []
        authorized_operations: Int32 = -(2**31)

    throttle_time_ms: Int32 = 0
    groups: list[DescribedGroup] = []
