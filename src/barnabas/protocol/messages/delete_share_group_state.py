"""DeleteShareGroupState: remove the state of share partitions from their coordinator."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import NULL_UUID, Int16, Int32, String, Uuid


class DeleteShareGroupStateRequest(Message, key=86, versions="0", flexible="0+"):
    class DeleteStateData(Struct):
        class PartitionData(Struct):
            partition: Int32 = 0

        topic_id: Uuid = NULL_UUID
        partitions: list[PartitionData] = []

    group_id: String = ""
    topics: list[DeleteStateData] = []


class DeleteShareGroupStateResponse(Message, key=86, versions="0", flexible="0+"):
    class DeleteStateResult(Struct):
        class PartitionResult(Struct):
            partition: Int32 = 0
            error_code: Int16 = 0
            error_message: String | None = None

        topic_id: Uuid = NULL_UUID
        partitions: list[PartitionResult] = []

    results: list[DeleteStateResult] = []
