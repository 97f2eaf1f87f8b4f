"""Data of producer snapshots, of the quorum state file, and of `__remote_log_metadata`."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since, tag
from barnabas.protocol.types import NULL_UUID, Bool, Bytes, Int8, Int16, Int32, Int64, String, UInt32, Uuid


class ProducerSnapshot(Message, versions="1"):
    class ProducerEntry(Struct):
        producer_id: Int64 = since("1", 0)
        epoch: Int16 = since("1", 0)
        last_sequence: Int32 = since("1", 0)
        last_offset: Int64 = since("1", 0)
        offset_delta: Int32 = since("1", 0)
        timestamp: Int64 = since("1", 0)
        coordinator_epoch: Int32 = since("1", 0)
        current_txn_first_offset: Int64 = since("1", 0)

    crc: UInt32 = since("1", 0)
    producer_entries: list[ProducerEntry] = since("1", [])


class QuorumStateData(Message, versions="0-1", flexible="0+"):
    class Voter(Struct):
        voter_id: Int32 = since("0", 0)

    cluster_id: String = since("0", "")
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1
    voted_id: Int32 = -1
    voted_directory_id: Uuid = since("1+", NULL_UUID)
    applied_offset: Int64 = since("0", 0)
    current_voters: list[Voter] | None = since("0", [])


class RemoteLogSegmentMetadataRecord(Message, key=0, versions="0", flexible="0+"):
    class RemoteLogSegmentIdEntry(Struct):
        class TopicIdPartitionEntry(Struct):
            name: String = ""
            id: Uuid = NULL_UUID
            partition: Int32 = 0

        topic_id_partition: TopicIdPartitionEntry = since("0+")
        id: Uuid = NULL_UUID

    class SegmentLeaderEpochEntry(Struct):
        leader_epoch: Int32 = 0
        offset: Int64 = 0

    remote_log_segment_id: RemoteLogSegmentIdEntry = since("0+")
    start_offset: Int64 = 0
    end_offset: Int64 = 0
    broker_id: Int32 = 0
    max_timestamp_ms: Int64 = 0
    event_timestamp_ms: Int64 = 0
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = []
    segment_size_in_bytes: Int32 = 0
    custom_metadata: Bytes | None = None
    remote_log_segment_state: Int8 = 0
    txn_index_empty: Bool = tag(0, "0+", False)


class RemoteLogSegmentMetadataSnapshotRecord(Message, key=3, versions="0", flexible="0+"):
    class SegmentLeaderEpochEntry(Struct):
        leader_epoch: Int32 = 0
        offset: Int64 = 0

    segment_id: Uuid = NULL_UUID
    start_offset: Int64 = 0
    end_offset: Int64 = 0
    broker_id: Int32 = 0
    max_timestamp_ms: Int64 = 0
    event_timestamp_ms: Int64 = 0
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = []
    segment_size_in_bytes: Int32 = 0
    custom_metadata: Bytes | None = None
    remote_log_segment_state: Int8 = 0
    txn_index_empty: Bool = tag(0, "0+", False)


class RemoteLogSegmentMetadataUpdateRecord(Message, key=1, versions="0", flexible="0+"):
    class RemoteLogSegmentIdEntry(Struct):
        class TopicIdPartitionEntry(Struct):
            name: String = ""
            id: Uuid = NULL_UUID
            partition: Int32 = 0

        topic_id_partition: TopicIdPartitionEntry = since("0+")
        id: Uuid = NULL_UUID

    remote_log_segment_id: RemoteLogSegmentIdEntry = since("0+")
    broker_id: Int32 = 0
    event_timestamp_ms: Int64 = 0
    custom_metadata: Bytes | None = None
    remote_log_segment_state: Int8 = 0


class RemotePartitionDeleteMetadataRecord(Message, key=2, versions="0", flexible="0+"):
    class TopicIdPartitionEntry(Struct):
        name: String = ""
        id: Uuid = NULL_UUID
        partition: Int32 = 0

    topic_id_partition: TopicIdPartitionEntry = since("0+")
    broker_id: Int32 = 0
    event_timestamp_ms: Int64 = 0
    remote_partition_delete_state: Int8 = 0
