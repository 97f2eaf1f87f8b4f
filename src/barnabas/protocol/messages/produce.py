"""Produce: append batches to partitions."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since, tag
from barnabas.protocol.types import NULL_UUID, Int16, Int32, Int64, Records, String, Uuid


class ProduceRequest(Message, key=0, versions="3-13", flexible="9+"):
    class TopicProduceData(Struct):
        class PartitionProduceData(Struct):
            index: Int32 = 0
            records: Records | None = None

        name: String = since("0-12", "", ignorable=True)
        topic_id: Uuid = since("13+", NULL_UUID, ignorable=True)
        partition_data: list[PartitionProduceData] = []

    transactional_id: String | None = since("3+", None)
    acks: Int16 = 0
    timeout_ms: Int32 = 0
    topic_data: list[TopicProduceData] = []


class ProduceResponse(Message, key=0, versions="3-13", flexible="9+"):
    class TopicProduceResponse(Struct):
        class PartitionProduceResponse(Struct):
            class BatchIndexAndErrorMessage(Struct):
                batch_index: Int32 = since("8+", 0)
                batch_index_error_message: String | None = since("8+", None)

            class LeaderIdAndEpoch(Struct):
                leader_id: Int32 = since("10+", -1)
                leader_epoch: Int32 = since("10+", -1)

            index: Int32 = 0
            error_code: Int16 = 0
            base_offset: Int64 = 0
            log_append_time_ms: Int64 = since("2+", -1, ignorable=True)
            log_start_offset: Int64 = since("5+", -1, ignorable=True)
            record_errors: list[BatchIndexAndErrorMessage] = since("8+", [], ignorable=True)
            error_message: String | None = since("8+", None, ignorable=True)
            current_leader: LeaderIdAndEpoch = tag(0, "10+")

        name: String = since("0-12", "", ignorable=True)
        topic_id: Uuid = since("13+", NULL_UUID, ignorable=True)
        partition_responses: list[PartitionProduceResponse] = []

    class NodeEndpoint(Struct):
        node_id: Int32 = since("10+", 0)
        host: String = since("10+", "")
        port: Int32 = since("10+", 0)
        rack: String | None = since("10+", None)

    responses: list[TopicProduceResponse] = []
    throttle_time_ms: Int32 = since("1+", 0, ignorable=True)
    node_endpoints: list[NodeEndpoint] = tag(0, "10+", [])
