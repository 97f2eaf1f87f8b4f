"""DescribeShareGroupOffsets: start offsets of share groups."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import NULL_UUID, Int16, Int32, Int64, String, Uuid


class DescribeShareGroupOffsetsRequest(Message, key=90, versions="0-1", flexible="0+"):
    class DescribeShareGroupOffsetsRequestGroup(Struct):
        class DescribeShareGroupOffsetsRequestTopic(Struct):
            topic_name: String = ""
            partitions: list[Int32] = []

        group_id: String = ""
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = []

    groups: list[DescribeShareGroupOffsetsRequestGroup] = []


class DescribeShareGroupOffsetsResponse(Message, key=90, versions="0-1", flexible="0+"):
    class DescribeShareGroupOffsetsResponseGroup(Struct):
        class DescribeShareGroupOffsetsResponseTopic(Struct):
            class DescribeShareGroupOffsetsResponsePartition(Struct):
                partition_index: Int32 = 0
                start_offset: Int64 = 0
                leader_epoch: Int32 = 0
                lag: Int64 = since("1+", -1, ignorable=True)
                error_code: Int16 = 0
                error_message: String | None = None

            topic_name: String = ""
            topic_id: Uuid = NULL_UUID
            partitions: list[DescribeShareGroupOffsetsResponsePartition] = []

        group_id: String = ""
        topics: list[DescribeShareGroupOffsetsResponseTopic] = []
        error_code: Int16 = 0
        error_message: String | None = None

    throttle_time_ms: Int32 = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
