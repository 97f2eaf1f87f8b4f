"""OffsetDelete: remove offsets of a group."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import Int16, Int32, String


class OffsetDeleteRequest(Message, key=47, versions="0"):
    class OffsetDeleteRequestTopic(Struct):
        class OffsetDeleteRequestPartition(Struct):
            partition_index: Int32 = 0

        name: String = ""
        partitions: list[OffsetDeleteRequestPartition] = []

    group_id: String = ""
    topics: list[OffsetDeleteRequestTopic] = []


class OffsetDeleteResponse(Message, key=47, versions="0"):
    class OffsetDeleteResponseTopic(Struct):
        class OffsetDeleteResponsePartition(Struct):
            partition_index: Int32 = 0
            error_code: Int16 = 0

        name: String = ""
        partitions: list[OffsetDeleteResponsePartition] = []

    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
