"""Fetch: read batches from partitions, as a consumer or a follower."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since, tag
from barnabas.protocol.types import NULL_UUID, Int8, Int16, Int32, Int64, Records, String, Uuid


class FetchRequest(Message, key=1, versions="4-18", flexible="12+"):
    class ReplicaState(Struct):
        replica_id: Int32 = since("15+", -1)
        replica_epoch: Int64 = since("15+", -1)

    class FetchTopic(Struct):
        class FetchPartition(Struct):
            partition: Int32 = 0
            current_leader_epoch: Int32 = since("9+", -1, ignorable=True)
            fetch_offset: Int64 = 0
            last_fetched_epoch: Int32 = since("12+", -1)
            log_start_offset: Int64 = since("5+", -1, ignorable=True)
            partition_max_bytes: Int32 = 0
            replica_directory_id: Uuid = tag(0, "17+", NULL_UUID, ignorable=True)
            high_watermark: Int64 = tag(1, "18+", 2**63 - 1, ignorable=True)

        topic: String = since("0-12", "", ignorable=True)
        topic_id: Uuid = since("13+", NULL_UUID, ignorable=True)
        partitions: list[FetchPartition] = []

    class ForgottenTopic(Struct):
        topic: String = since("7-12", "", ignorable=True)
        topic_id: Uuid = since("13+", NULL_UUID, ignorable=True)
        partitions: list[Int32] = since("7+", [])

    cluster_id: String | None = tag(0, "12+", None, ignorable=True)
    replica_id: Int32 = since("0-14", -1)
    replica_state: ReplicaState = tag(1, "15+")
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = since("3+", 2**31 - 1, ignorable=True)
    isolation_level: Int8 = since("4+", 0, ignorable=True)
    session_id: Int32 = since("7+", 0, ignorable=True)
    session_epoch: Int32 = since("7+", -1, ignorable=True)
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = since("7+", [])
    rack_id: String = since("11+", "", ignorable=True)


class FetchResponse(Message, key=1, versions="4-18", flexible="12+"):
    class FetchableTopicResponse(Struct):
        class PartitionData(Struct):
            class EpochEndOffset(Struct):
                epoch: Int32 = since("12+", -1)
                end_offset: Int64 = since("12+", -1)

            class LeaderIdAndEpoch(Struct):
                leader_id: Int32 = since("12+", -1)
                leader_epoch: Int32 = since("12+", -1)

            class SnapshotId(Struct):
                end_offset: Int64 = -1
                epoch: Int32 = -1

            class AbortedTransaction(Struct):
                producer_id: Int64 = since("4+", 0)
                first_offset: Int64 = since("4+", 0)

            partition_index: Int32 = 0
            error_code: Int16 = 0
            high_watermark: Int64 = 0
            last_stable_offset: Int64 = since("4+", -1, ignorable=True)
            log_start_offset: Int64 = since("5+", -1, ignorable=True)
            diverging_epoch: EpochEndOffset = tag(0, "12+")
            current_leader: LeaderIdAndEpoch = tag(1, "12+")
            snapshot_id: SnapshotId = tag(2, "12+")
            aborted_transactions: list[AbortedTransaction] | None = since("4+", [], ignorable=True)
            preferred_read_replica: Int32 = since("11+", -1)
            records: Records | None = None

        topic: String = since("0-12", "", ignorable=True)
        topic_id: Uuid = since("13+", NULL_UUID, ignorable=True)
        partitions: list[PartitionData] = []

    class NodeEndpoint(Struct):
        node_id: Int32 = since("16+", 0)
        host: String = since("16+", "")
        port: Int32 = since("16+", 0)
        rack: String | None = since("16+", None)

    throttle_time_ms: Int32 = since("1+", 0, ignorable=True)
    error_code: Int16 = since("7+", 0, ignorable=True)
    session_id: Int32 = since("7+", 0)
    responses: list[FetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = tag(0, "16+", [])
