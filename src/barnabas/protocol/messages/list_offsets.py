"""ListOffsets: first, last, or timed offsets of partitions."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Int8, Int16, Int32, Int64, String


class ListOffsetsRequest(Message, key=2, versions="1-11", flexible="6+"):
    class ListOffsetsTopic(Struct):
        class ListOffsetsPartition(Struct):
            partition_index: Int32 = 0
            current_leader_epoch: Int32 = since("4+", -1, ignorable=True)
            timestamp: Int64 = 0

        name: String = ""
        partitions: list[ListOffsetsPartition] = []

    replica_id: Int32 = 0
    isolation_level: Int8 = since("2+", 0)
    topics: list[ListOffsetsTopic] = []
    timeout_ms: Int32 = since("10+", 0, ignorable=True)


class ListOffsetsResponse(Message, key=2, versions="1-11", flexible="6+"):
    class ListOffsetsTopicResponse(Struct):
        class ListOffsetsPartitionResponse(Struct):
            partition_index: Int32 = 0
            error_code: Int16 = 0
            timestamp: Int64 = since("1+", -1)
            offset: Int64 = since("1+", -1)
            leader_epoch: Int32 = since("4+", -1)

        name: String = ""
        partitions: list[ListOffsetsPartitionResponse] = []

    throttle_time_ms: Int32 = since("2+", 0, ignorable=True)
    topics: list[ListOffsetsTopicResponse] = []
