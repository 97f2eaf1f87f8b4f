"""ShareAcknowledge: a consumer of a share group accepts, releases or rejects records."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import NULL_UUID, Bool, Int8, Int16, Int32, Int64, String, Uuid


class ShareAcknowledgeRequest(Message, key=79, versions="1-2", flexible="0+"):
    class AcknowledgeTopic(Struct):
        class AcknowledgePartition(Struct):
            class AcknowledgementBatch(Struct):
                first_offset: Int64 = 0
                last_offset: Int64 = 0
                acknowledge_types: list[Int8] = []

            partition_index: Int32 = 0
            acknowledgement_batches: list[AcknowledgementBatch] = []

        topic_id: Uuid = NULL_UUID
        partitions: list[AcknowledgePartition] = []

    group_id: String | None = None
    member_id: String | None = ""
    share_session_epoch: Int32 = 0
    is_renew_ack: Bool = since("2+", False)
    topics: list[AcknowledgeTopic] = []


class ShareAcknowledgeResponse(Message, key=79, versions="1-2", flexible="0+"):
    class ShareAcknowledgeTopicResponse(Struct):
        class PartitionData(Struct):
            class LeaderIdAndEpoch(Struct):
                leader_id: Int32 = 0
                leader_epoch: Int32 = 0

            partition_index: Int32 = 0
            error_code: Int16 = 0
            error_message: String | None = None
            current_leader: LeaderIdAndEpoch = since("0+")

        topic_id: Uuid = NULL_UUID
        partitions: list[PartitionData] = []

    class NodeEndpoint(Struct):
        node_id: Int32 = 0
        host: String = ""
        port: Int32 = 0
        rack: String | None = None

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acquisition_lock_timeout_ms: Int32 = since("2+", 0, ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
