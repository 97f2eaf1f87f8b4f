"""DeleteRecords: move the log start of partitions forward."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import Int16, Int32, Int64, String


class DeleteRecordsRequest(Message, key=21, versions="0-2", flexible="2+"):
    class DeleteRecordsTopic(Struct):
        class DeleteRecordsPartition(Struct):
            partition_index: Int32 = 0
            offset: Int64 = 0

        name: String = ""
        partitions: list[DeleteRecordsPartition] = []

    topics: list[DeleteRecordsTopic] = []
    timeout_ms: Int32 = 0


class DeleteRecordsResponse(Message, key=21, versions="0-2", flexible="2+"):
    class DeleteRecordsTopicResult(Struct):
        class DeleteRecordsPartitionResult(Struct):
            partition_index: Int32 = 0
            low_watermark: Int64 = 0
            error_code: Int16 = 0

        name: String = ""
        partitions: list[DeleteRecordsPartitionResult] = []

    throttle_time_ms: Int32 = 0
    topics: list[DeleteRecordsTopicResult] = []
