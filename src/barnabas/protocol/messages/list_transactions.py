"""ListTransactions: transactions that a broker coordinates."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Int16, Int32, Int64, String


class ListTransactionsRequest(Message, key=66, versions="0-2", flexible="0+"):
    state_filters: list[String] = []
    producer_id_filters: list[Int64] = []
    duration_filter: Int64 = since("1+", -1)
    transactional_id_pattern: String | None = since("2+", None)


class ListTransactionsResponse(Message, key=66, versions="0-2", flexible="0+"):
    class TransactionState(Struct):
        transactional_id: String = ""
        producer_id: Int64 = 0
        transaction_state: String = ""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: list[String] = []
    transaction_states: list[TransactionState] = []
