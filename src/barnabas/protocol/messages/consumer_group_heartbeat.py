"""ConsumerGroupHeartbeat: a member of a group with the new protocol joins, stays or leaves (KIP-848)."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import NULL_UUID, Int16, Int32, String, Uuid


class ConsumerGroupHeartbeatRequest(Message, key=68, versions="0-1", flexible="0+"):
    class TopicPartitions(Struct):
        topic_id: Uuid = NULL_UUID
        partitions: list[Int32] = []

    group_id: String = ""
    member_id: String = ""
    member_epoch: Int32 = 0
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: list[String] | None = None
    subscribed_topic_regex: String | None = since("1+", None)
    server_assignor: String | None = None
    topic_partitions: list[TopicPartitions] | None = None


class ConsumerGroupHeartbeatResponse(Message, key=68, versions="0-1", flexible="0+"):
    class TopicPartitions(Struct):
        topic_id: Uuid = NULL_UUID
        partitions: list[Int32] = []

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = []

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None
