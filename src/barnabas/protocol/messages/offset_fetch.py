"""OffsetFetch: read the offsets of groups."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import NULL_UUID, Bool, Int16, Int32, Int64, String, Uuid


class OffsetFetchRequest(Message, key=9, versions="1-10", flexible="6+"):
    class OffsetFetchRequestTopic(Struct):
        name: String = since("0-7", "")
        partition_indexes: list[Int32] = since("0-7", [])

    class OffsetFetchRequestGroup(Struct):
        class OffsetFetchRequestTopics(Struct):
            name: String = since("8-9", "", ignorable=True)
            topic_id: Uuid = since("10+", NULL_UUID, ignorable=True)
            partition_indexes: list[Int32] = since("8+", [])

        group_id: String = since("8+", "")
        member_id: String | None = since("9+", None, ignorable=True)
        member_epoch: Int32 = since("9+", -1, ignorable=True)
        topics: list[OffsetFetchRequestTopics] | None = since("8+", [])

    group_id: String = since("0-7", "")
    topics: list[OffsetFetchRequestTopic] | None = since("0-7", [], nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = since("8+", [])
    require_stable: Bool = since("7+", False)


class OffsetFetchResponse(Message, key=9, versions="1-10", flexible="6+"):
    class OffsetFetchResponseTopic(Struct):
        class OffsetFetchResponsePartition(Struct):
            partition_index: Int32 = since("0-7", 0)
            committed_offset: Int64 = since("0-7", 0)
            committed_leader_epoch: Int32 = since("5-7", -1, ignorable=True)
            metadata: String | None = since("0-7", "")
            error_code: Int16 = since("0-7", 0)

        name: String = since("0-7", "")
        partitions: list[OffsetFetchResponsePartition] = since("0-7", [])

    class OffsetFetchResponseGroup(Struct):
        class OffsetFetchResponseTopics(Struct):
            class OffsetFetchResponsePartitions(Struct):
                partition_index: Int32 = since("8+", 0)
                committed_offset: Int64 = since("8+", 0)
                committed_leader_epoch: Int32 = since("8+", -1, ignorable=True)
                metadata: String | None = since("8+", "")
                error_code: Int16 = since("8+", 0)

            name: String = since("8-9", "", ignorable=True)
            topic_id: Uuid = since("10+", NULL_UUID, ignorable=True)
            partitions: list[OffsetFetchResponsePartitions] = since("8+", [])

        group_id: String = since("8+", "")
        topics: list[OffsetFetchResponseTopics] = since("8+", [])
        error_code: Int16 = since("8+", 0)

    throttle_time_ms: Int32 = since("3+", 0, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = since("0-7", [])
    error_code: Int16 = since("2-7", 0, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = since("8+", [])
