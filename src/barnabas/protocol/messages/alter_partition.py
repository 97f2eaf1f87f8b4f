"""AlterPartition: a leader tells the controller of its new in-sync replicas."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import NULL_UUID, Int8, Int16, Int32, Int64, Uuid


class AlterPartitionRequest(Message, key=56, versions="2-3", flexible="0+"):
    class TopicData(Struct):
        class PartitionData(Struct):
            class BrokerState(Struct):
                broker_id: Int32 = since("3+", 0)
                broker_epoch: Int64 = since("3+", -1)

            partition_index: Int32 = 0
            leader_epoch: Int32 = 0
            new_isr: list[Int32] = since("0-2", [])
            new_isr_with_epochs: list[BrokerState] = since("3+", [])
            leader_recovery_state: Int8 = since("1+", 0)
            partition_epoch: Int32 = 0

        topic_id: Uuid = since("2+", NULL_UUID, ignorable=True)
        partitions: list[PartitionData] = []

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    topics: list[TopicData] = []


class AlterPartitionResponse(Message, key=56, versions="2-3", flexible="0+"):
    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: Int32 = 0
            error_code: Int16 = 0
            leader_id: Int32 = 0
            leader_epoch: Int32 = 0
            isr: list[Int32] = []
            leader_recovery_state: Int8 = since("1+", 0, ignorable=True)
            partition_epoch: Int32 = 0

        topic_id: Uuid = since("2+", NULL_UUID, ignorable=True)
        partitions: list[PartitionData] = []

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    topics: list[TopicData] = []
