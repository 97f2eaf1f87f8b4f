"""AssignReplicasToDirs: a broker tells the controller which log directory holds which replica."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import NULL_UUID, Int16, Int32, Int64, Uuid


class AssignReplicasToDirsRequest(Message, key=73, versions="0", flexible="0+"):
    class DirectoryData(Struct):
        class TopicData(Struct):
            class PartitionData(Struct):
                partition_index: Int32 = 0

            topic_id: Uuid = NULL_UUID
            partitions: list[PartitionData] = []

        id: Uuid = NULL_UUID
        topics: list[TopicData] = []

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    directories: list[DirectoryData] = []


class AssignReplicasToDirsResponse(Message, key=73, versions="0", flexible="0+"):
    class DirectoryData(Struct):
        class TopicData(Struct):
            class PartitionData(Struct):
                partition_index: Int32 = 0
                error_code: Int16 = 0

            topic_id: Uuid = NULL_UUID
            partitions: list[PartitionData] = []

        id: Uuid = NULL_UUID
        topics: list[TopicData] = []

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    directories: list[DirectoryData] = []
