"""EndQuorumEpoch: a leader of the quorum resigns."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since, tag
from barnabas.protocol.types import NULL_UUID, Int16, Int32, String, UInt16, Uuid


class EndQuorumEpochRequest(Message, key=54, versions="0-1", flexible="1+"):
    class TopicData(Struct):
        class PartitionData(Struct):
            class ReplicaInfo(Struct):
                candidate_id: Int32 = since("1+", 0)
                candidate_directory_id: Uuid = since("1+", NULL_UUID)

            partition_index: Int32 = 0
            leader_id: Int32 = 0
            leader_epoch: Int32 = 0
            preferred_successors: list[Int32] = since("0", [], ignorable=True)
            preferred_candidates: list[ReplicaInfo] = since("1+", [], ignorable=True)

        topic_name: String = ""
        partitions: list[PartitionData] = []

    class LeaderEndpoint(Struct):
        name: String = since("1+", "")
        host: String = since("1+", "")
        port: UInt16 = since("1+", 0)

    cluster_id: String | None = None
    topics: list[TopicData] = []
    leader_endpoints: list[LeaderEndpoint] = since("1+", [], ignorable=True)


class EndQuorumEpochResponse(Message, key=54, versions="0-1", flexible="1+"):
    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: Int32 = 0
            error_code: Int16 = 0
            leader_id: Int32 = 0
            leader_epoch: Int32 = 0

        topic_name: String = ""
        partitions: list[PartitionData] = []

    class NodeEndpoint(Struct):
        node_id: Int32 = since("1+", 0)
        host: String = since("1+", "")
        port: UInt16 = since("1+", 0)

    error_code: Int16 = 0
    topics: list[TopicData] = []
    node_endpoints: list[NodeEndpoint] = tag(0, "1+", [])
