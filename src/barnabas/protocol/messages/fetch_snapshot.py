"""FetchSnapshot: read a piece of a metadata snapshot."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since, tag
from barnabas.protocol.types import NULL_UUID, Int16, Int32, Int64, Records, String, UInt16, Uuid


class FetchSnapshotRequest(Message, key=59, versions="0-1", flexible="0+"):
    class TopicSnapshot(Struct):
        class PartitionSnapshot(Struct):
            class SnapshotId(Struct):
                end_offset: Int64 = 0
                epoch: Int32 = 0

            partition: Int32 = 0
            current_leader_epoch: Int32 = 0
            snapshot_id: SnapshotId = since("0+")
            position: Int64 = 0
            replica_directory_id: Uuid = tag(0, "1+", NULL_UUID, ignorable=True)

        name: String = ""
        partitions: list[PartitionSnapshot] = []

    cluster_id: String | None = tag(0, "0+", None)
    replica_id: Int32 = -1
    max_bytes: Int32 = 2**31 - 1
    topics: list[TopicSnapshot] = []


class FetchSnapshotResponse(Message, key=59, versions="0-1", flexible="0+"):
    class TopicSnapshot(Struct):
        class PartitionSnapshot(Struct):
            class SnapshotId(Struct):
                end_offset: Int64 = 0
                epoch: Int32 = 0

            class LeaderIdAndEpoch(Struct):
                leader_id: Int32 = 0
                leader_epoch: Int32 = 0

            index: Int32 = 0
            error_code: Int16 = 0
            snapshot_id: SnapshotId = since("0+")
            current_leader: LeaderIdAndEpoch = tag(0, "0+")
            size: Int64 = 0
            position: Int64 = 0
            unaligned_records: Records = None

        name: String = ""
        partitions: list[PartitionSnapshot] = []

    class NodeEndpoint(Struct):
        node_id: Int32 = since("1+", 0)
        host: String = since("1+", "")
        port: UInt16 = since("1+", 0)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    topics: list[TopicSnapshot] = []
    node_endpoints: list[NodeEndpoint] = tag(0, "1+", [])
