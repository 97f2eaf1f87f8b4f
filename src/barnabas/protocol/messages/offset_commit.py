"""OffsetCommit: store the offsets of a group."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import NULL_UUID, Int16, Int32, Int64, String, Uuid


class OffsetCommitRequest(Message, key=8, versions="2-10", flexible="8+"):
    class OffsetCommitRequestTopic(Struct):
        class OffsetCommitRequestPartition(Struct):
            partition_index: Int32 = 0
            committed_offset: Int64 = 0
            committed_leader_epoch: Int32 = since("6+", -1, ignorable=True)
            committed_metadata: String | None = ""

        name: String = since("0-9", "", ignorable=True)
        topic_id: Uuid = since("10+", NULL_UUID, ignorable=True)
        partitions: list[OffsetCommitRequestPartition] = []

    group_id: String = ""
    generation_id_or_member_epoch: Int32 = since("1+", -1, ignorable=True)
    member_id: String = since("1+", "", ignorable=True)
    group_instance_id: String | None = since("7+", None)
    retention_time_ms: Int64 = since("2-4", -1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = []


class OffsetCommitResponse(Message, key=8, versions="2-10", flexible="8+"):
    class OffsetCommitResponseTopic(Struct):
        class OffsetCommitResponsePartition(Struct):
            partition_index: Int32 = 0
            error_code: Int16 = 0

        name: String = since("0-9", "", ignorable=True)
        topic_id: Uuid = since("10+", NULL_UUID, ignorable=True)
        partitions: list[OffsetCommitResponsePartition] = []

    throttle_time_ms: Int32 = since("3+", 0, ignorable=True)
    topics: list[OffsetCommitResponseTopic] = []
