"""ShareFetch: read records as a member of a share group, and acknowledge earlier ones."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import NULL_UUID, Bool, Int8, Int16, Int32, Int64, Records, String, Uuid


class ShareFetchRequest(Message, key=78, versions="1-2", flexible="0+"):
    class FetchTopic(Struct):
        class FetchPartition(Struct):
            class AcknowledgementBatch(Struct):
                first_offset: Int64 = 0
                last_offset: Int64 = 0
                acknowledge_types: list[Int8] = []

            partition_index: Int32 = 0
            partition_max_bytes: Int32 = since("0", 0)
            acknowledgement_batches: list[AcknowledgementBatch] = []

        topic_id: Uuid = NULL_UUID
        partitions: list[FetchPartition] = []

    class ForgottenTopic(Struct):
        topic_id: Uuid = NULL_UUID
        partitions: list[Int32] = []

    group_id: String | None = None
    member_id: String | None = ""
    share_session_epoch: Int32 = 0
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = 2**31 - 1
    max_records: Int32 = since("1+", 0)
    batch_size: Int32 = since("1+", 0)
    share_acquire_mode: Int8 = since("2+", 0, ignorable=True)
    is_renew_ack: Bool = since("2+", False)
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = []


class ShareFetchResponse(Message, key=78, versions="1-2", flexible="0+"):
    class ShareFetchableTopicResponse(Struct):
        class PartitionData(Struct):
            class LeaderIdAndEpoch(Struct):
                leader_id: Int32 = 0
                leader_epoch: Int32 = 0

            class AcquiredRecords(Struct):
                first_offset: Int64 = 0
                last_offset: Int64 = 0
                delivery_count: Int16 = 0

            partition_index: Int32 = 0
            error_code: Int16 = 0
            error_message: String | None = None
            acknowledge_error_code: Int16 = 0
            acknowledge_error_message: String | None = None
            current_leader: LeaderIdAndEpoch = since("0+")
            records: Records | None = since("0+", None, nullable="0")
            acquired_records: list[AcquiredRecords] = []

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
    acquisition_lock_timeout_ms: Int32 = since("1+", 0)
    responses: list[ShareFetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
