"""ReadShareGroupStateSummary: read the start offsets of share partitions from their coordinator."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import NULL_UUID, Int16, Int32, Int64, String, Uuid


class ReadShareGroupStateSummaryRequest(Message, key=87, versions="0-1", flexible="0+"):
    class ReadStateSummaryData(Struct):
        class PartitionData(Struct):
            partition: Int32 = 0
            leader_epoch: Int32 = 0

        topic_id: Uuid = NULL_UUID
        partitions: list[PartitionData] = []

    group_id: String = ""
    topics: list[ReadStateSummaryData] = []


class ReadShareGroupStateSummaryResponse(Message, key=87, versions="0-1", flexible="0+"):
    class ReadStateSummaryResult(Struct):
        class PartitionResult(Struct):
            partition: Int32 = 0
            error_code: Int16 = 0
            error_message: String | None = None
            state_epoch: Int32 = 0
            leader_epoch: Int32 = 0
            start_offset: Int64 = 0
            delivery_complete_count: Int32 = since("1+", -1, ignorable=True)

        topic_id: Uuid = NULL_UUID
        partitions: list[PartitionResult] = []

    results: list[ReadStateSummaryResult] = []
