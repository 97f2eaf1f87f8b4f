"""OffsetForLeaderEpoch: where a leader epoch ends in a partition's log."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Int16, Int32, Int64, String


class OffsetForLeaderEpochRequest(Message, key=23, versions="2-4", flexible="4+"):
    class OffsetForLeaderTopic(Struct):
        class OffsetForLeaderPartition(Struct):
            partition: Int32 = 0
            current_leader_epoch: Int32 = since("2+", -1, ignorable=True)
            leader_epoch: Int32 = 0

        topic: String = ""
        partitions: list[OffsetForLeaderPartition] = []

    replica_id: Int32 = since("3+", -2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = []


class OffsetForLeaderEpochResponse(Message, key=23, versions="2-4", flexible="4+"):
    class OffsetForLeaderTopicResult(Struct):
        class EpochEndOffset(Struct):
            error_code: Int16 = 0
            partition: Int32 = 0
            leader_epoch: Int32 = since("1+", -1, ignorable=True)
            end_offset: Int64 = -1

        topic: String = ""
        partitions: list[EpochEndOffset] = []

    throttle_time_ms: Int32 = since("2+", 0, ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = []
