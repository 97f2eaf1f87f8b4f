"""DescribeProducers: producers that wrote to partitions lately."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import Int16, Int32, Int64, String


class DescribeProducersRequest(Message, key=61, versions="0", flexible="0+"):
    class TopicRequest(Struct):
        name: String = ""
        partition_indexes: list[Int32] = []

    topics: list[TopicRequest] = []


class DescribeProducersResponse(Message, key=61, versions="0", flexible="0+"):
    class TopicResponse(Struct):
        class PartitionResponse(Struct):
            class ProducerState(Struct):
                producer_id: Int64 = 0
                producer_epoch: Int32 = 0
                last_sequence: Int32 = -1
                last_timestamp: Int64 = -1
                coordinator_epoch: Int32 = 0
                current_txn_start_offset: Int64 = -1

            partition_index: Int32 = 0
            error_code: Int16 = 0
            error_message: String | None = None
            active_producers: list[ProducerState] = []

        name: String = ""
        partitions: list[PartitionResponse] = []

    throttle_time_ms: Int32 = 0
    topics: list[TopicResponse] = []
