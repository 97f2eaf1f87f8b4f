"""DescribeQuorum: leader, voters and observers of the quorum, with how far each has read."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import NULL_UUID, Int16, Int32, Int64, String, UInt16, Uuid


class DescribeQuorumRequest(Message, key=55, versions="0-2", flexible="0+"):
    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: Int32 = 0

        topic_name: String = ""
        partitions: list[PartitionData] = []

    topics: list[TopicData] = []


class DescribeQuorumResponse(Message, key=55, versions="0-2", flexible="0+"):
    class ReplicaState(Struct):
        replica_id: Int32 = 0
        replica_directory_id: Uuid = since("2+", NULL_UUID)
        log_end_offset: Int64 = 0
        last_fetch_timestamp: Int64 = since("1+", -1, ignorable=True)
        last_caught_up_timestamp: Int64 = since("1+", -1, ignorable=True)

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: Int32 = 0
            error_code: Int16 = 0
            error_message: String | None = since("2+", "", ignorable=True)
            leader_id: Int32 = 0
            leader_epoch: Int32 = 0
            high_watermark: Int64 = 0
            current_voters: list[DescribeQuorumResponse.ReplicaState] = []
            observers: list[DescribeQuorumResponse.ReplicaState] = []

        topic_name: String = ""
        partitions: list[PartitionData] = []

    class Node(Struct):
        class Listener(Struct):
            name: String = since("2+", "")
            host: String = since("2+", "")
            port: UInt16 = since("2+", 0)

        node_id: Int32 = since("2+", 0)
        listeners: list[Listener] = since("2+", [])

    error_code: Int16 = 0
    error_message: String | None = since("2+", "", ignorable=True)
    topics: list[TopicData] = []
    nodes: list[Node] = since("2+", [])
