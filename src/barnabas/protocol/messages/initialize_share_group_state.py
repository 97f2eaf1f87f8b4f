"""InitializeShareGroupState: start the state of share partitions at their coordinator."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import NULL_UUID, Int16, Int32, Int64, String, Uuid


class InitializeShareGroupStateRequest(Message, key=83, versions="0", flexible="0+"):
    class InitializeStateData(Struct):
        class PartitionData(Struct):
            partition: Int32 = 0
            state_epoch: Int32 = 0
            start_offset: Int64 = 0

        topic_id: Uuid = NULL_UUID
        partitions: list[PartitionData] = []

    group_id: String = ""
    topics: list[InitializeStateData] = []


class InitializeShareGroupStateResponse(Message, key=83, versions="0", flexible="0+"):
    class InitializeStateResult(Struct):
        class PartitionResult(Struct):
            partition: Int32 = 0
            error_code: Int16 = 0
            error_message: String | None = None

        topic_id: Uuid = NULL_UUID
        partitions: list[PartitionResult] = []

    results: list[InitializeStateResult] = []
