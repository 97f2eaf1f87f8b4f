"""AlterShareGroupOffsets: set the start offsets of a share group."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import NULL_UUID, Int16, Int32, Int64, String, Uuid


class AlterShareGroupOffsetsRequest(Message, key=91, versions="0", flexible="0+"):
    class AlterShareGroupOffsetsRequestTopic(Struct):
        class AlterShareGroupOffsetsRequestPartition(Struct):
            partition_index: Int32 = 0
            start_offset: Int64 = 0

        topic_name: String = ""
        partitions: list[AlterShareGroupOffsetsRequestPartition] = []

    group_id: String = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = []


class AlterShareGroupOffsetsResponse(Message, key=91, versions="0", flexible="0+"):
    class AlterShareGroupOffsetsResponseTopic(Struct):
        class AlterShareGroupOffsetsResponsePartition(Struct):
            partition_index: Int32 = 0
            error_code: Int16 = 0
            error_message: String | None = None

        topic_name: String = ""
        topic_id: Uuid = NULL_UUID
        partitions: list[AlterShareGroupOffsetsResponsePartition] = []

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = []
