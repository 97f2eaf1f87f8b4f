"""AddPartitionsToTxn: a transaction will write to these partitions."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bool, Int16, Int32, Int64, String


class AddPartitionsToTxnRequest(Message, key=24, versions="0-5", flexible="3+"):
    class AddPartitionsToTxnTopic(Struct):
        name: String = ""
        partitions: list[Int32] = []

    class AddPartitionsToTxnTransaction(Struct):
        transactional_id: String = since("4+", "")
        producer_id: Int64 = since("4+", 0)
        producer_epoch: Int16 = since("4+", 0)
        verify_only: Bool = since("4+", False)
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = since("4+", [])

    transactions: list[AddPartitionsToTxnTransaction] = since("4+", [])
    v3_and_below_transactional_id: String = since("0-3", "")
    v3_and_below_producer_id: Int64 = since("0-3", 0)
    v3_and_below_producer_epoch: Int16 = since("0-3", 0)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = since("0-3", [])


class AddPartitionsToTxnResponse(Message, key=24, versions="0-5", flexible="3+"):
    class AddPartitionsToTxnTopicResult(Struct):
        name: String = ""
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = []

    class AddPartitionsToTxnPartitionResult(Struct):
        partition_index: Int32 = 0
        partition_error_code: Int16 = 0

    class AddPartitionsToTxnResult(Struct):
        transactional_id: String = since("4+", "")
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = since("4+", [])

    throttle_time_ms: Int32 = 0
    error_code: Int16 = since("4+", 0, ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = since("4+", [])
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = since("0-3", [])
