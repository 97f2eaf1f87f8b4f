"""WriteShareGroupState: store the state of share partitions at their coordinator."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import NULL_UUID, Int8, Int16, Int32, Int64, String, Uuid


class WriteShareGroupStateRequest(Message, key=85, versions="0-1", flexible="0+"):
    class WriteStateData(Struct):
        class PartitionData(Struct):
            class StateBatch(Struct):
                first_offset: Int64 = 0
                last_offset: Int64 = 0
                delivery_state: Int8 = 0
                delivery_count: Int16 = 0

            partition: Int32 = 0
            state_epoch: Int32 = 0
            leader_epoch: Int32 = 0
            start_offset: Int64 = 0
            delivery_complete_count: Int32 = since("1+", -1, ignorable=True)
            state_batches: list[StateBatch] = []

        topic_id: Uuid = NULL_UUID
        partitions: list[PartitionData] = []

    group_id: String = ""
    topics: list[WriteStateData] = []


class WriteShareGroupStateResponse(Message, key=85, versions="0-1", flexible="0+"):
    class WriteStateResult(Struct):
        class PartitionResult(Struct):
            partition: Int32 = 0
            error_code: Int16 = 0
            error_message: String | None = None

        topic_id: Uuid = NULL_UUID
        partitions: list[PartitionResult] = []

    results: list[WriteStateResult] = []
