"""DescribeTransactions: state and partitions of transactions."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import Int16, Int32, Int64, String


class DescribeTransactionsRequest(Message, key=65, versions="0", flexible="0+"):
    transactional_ids: list[String] = []


class DescribeTransactionsResponse(Message, key=65, versions="0", flexible="0+"):
    class TransactionState(Struct):
        class TopicData(Struct):
            topic: String = ""
            partitions: list[Int32] = []

        error_code: Int16 = 0
        transactional_id: String = ""
        transaction_state: String = ""
        transaction_timeout_ms: Int32 = 0
        transaction_start_time_ms: Int64 = 0
        producer_id: Int64 = 0
        producer_epoch: Int16 = 0
        topics: list[TopicData] = []

    throttle_time_ms: Int32 = 0
    transaction_states: list[TransactionState] = []
