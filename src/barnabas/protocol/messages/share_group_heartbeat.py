"""ShareGroupHeartbeat: a member of a share group joins, stays or leaves."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import NULL_UUID, Int16, Int32, String, Uuid


class ShareGroupHeartbeatRequest(Message, key=76, versions="1", flexible="0+"):
    group_id: String = ""
    member_id: String = ""
    member_epoch: Int32 = 0
    rack_id: String | None = None
    subscribed_topic_names: list[String] | None = None


class ShareGroupHeartbeatResponse(Message, key=76, versions="1", flexible="0+"):
    class TopicPartitions(Struct):
        topic_id: Uuid = NULL_UUID
        partitions: list[Int32] = []

    class Assignment(Struct):
        topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions] = []

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None
