"""TxnOffsetCommit: store the offsets of a group within a transaction."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Int16, Int32, Int64, String


class TxnOffsetCommitRequest(Message, key=28, versions="0-5", flexible="3+"):
    class TxnOffsetCommitRequestTopic(Struct):
        class TxnOffsetCommitRequestPartition(Struct):
            partition_index: Int32 = 0
            committed_offset: Int64 = 0
            committed_leader_epoch: Int32 = since("2+", -1, ignorable=True)
            committed_metadata: String | None = ""

        name: String = ""
        partitions: list[TxnOffsetCommitRequestPartition] = []

    transactional_id: String = ""
    group_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    generation_id: Int32 = since("3+", -1)
    member_id: String = since("3+", "")
    group_instance_id: String | None = since("3+", None)
    topics: list[TxnOffsetCommitRequestTopic] = []


class TxnOffsetCommitResponse(Message, key=28, versions="0-5", flexible="3+"):
    class TxnOffsetCommitResponseTopic(Struct):
        class TxnOffsetCommitResponsePartition(Struct):
            partition_index: Int32 = 0
            error_code: Int16 = 0

        name: String = ""
        partitions: list[TxnOffsetCommitResponsePartition] = []

    throttle_time_ms: Int32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
