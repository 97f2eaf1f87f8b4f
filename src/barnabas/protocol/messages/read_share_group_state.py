"""ReadShareGroupState: read the state of share partitions from their coordinator."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import NULL_UUID, Int8, Int16, Int32, Int64, String, Uuid


class ReadShareGroupStateRequest(Message, key=84, versions="0", flexible="0+"):
    class ReadStateData(Struct):
        class PartitionData(Struct):
            partition: Int32 = 0
            leader_epoch: Int32 = 0

        topic_id: Uuid = NULL_UUID
        partitions: list[PartitionData] = []

    group_id: String = ""
    topics: list[ReadStateData] = []


class ReadShareGroupStateResponse(Message, key=84, versions="0", flexible="0+"):
    class ReadStateResult(Struct):
        class PartitionResult(Struct):
            class StateBatch(Struct):
                first_offset: Int64 = 0
                last_offset: Int64 = 0
                delivery_state: Int8 = 0
                delivery_count: Int16 = 0

            partition: Int32 = 0
            error_code: Int16 = 0
            error_message: String | None = None
            state_epoch: Int32 = 0
            start_offset: Int64 = 0
            state_batches: list[StateBatch] = []

        topic_id: Uuid = NULL_UUID
        partitions: list[PartitionResult] = []

    results: list[ReadStateResult] = []
