"""Vote: a candidate asks for votes, or whether it would get them."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since, tag
from barnabas.protocol.types import NULL_UUID, Bool, Int16, Int32, Int64, String, UInt16, Uuid


class VoteRequest(Message, key=52, versions="0-2", flexible="0+"):
    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: Int32 = 0
            replica_epoch: Int32 = 0
            replica_id: Int32 = 0
            replica_directory_id: Uuid = since("1+", NULL_UUID, ignorable=True)
            voter_directory_id: Uuid = since("1+", NULL_UUID, ignorable=True)
            last_offset_epoch: Int32 = 0
            last_offset: Int64 = 0
            pre_vote: Bool = since("2+", False)

        topic_name: String = ""
        partitions: list[PartitionData] = []

    cluster_id: String | None = None
    voter_id: Int32 = since("1+", -1, ignorable=True)
    topics: list[TopicData] = []


class VoteResponse(Message, key=52, versions="0-2", flexible="0+"):
    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: Int32 = 0
            error_code: Int16 = 0
            leader_id: Int32 = 0
            leader_epoch: Int32 = 0
            vote_granted: Bool = False

        topic_name: String = ""
        partitions: list[PartitionData] = []

    class NodeEndpoint(Struct):
        node_id: Int32 = since("1+", 0)
        host: String = since("1+", "")
        port: UInt16 = since("1+", 0)

    error_code: Int16 = 0
    topics: list[TopicData] = []
    node_endpoints: list[NodeEndpoint] = tag(0, "1+", [])
