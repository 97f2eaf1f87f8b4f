"""Records of `__transaction_state`: the transactions of a coordinator.

Each key follows two bytes with the record type (`key` here). Each value follows two bytes with its version.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since, tag
from barnabas.protocol.types import Int8, Int16, Int32, Int64, String


class TransactionLogKey(Message, key=0, versions="0"):
    transactional_id: String = since("0", "")


class TransactionLogValue(Message, key=0, versions="0-1", flexible="1+"):
    class PartitionsSchema(Struct):
        topic: String = ""
        partition_ids: list[Int32] = []

    producer_id: Int64 = 0
    previous_producer_id: Int64 = tag(0, "1+", -1)
    next_producer_id: Int64 = tag(1, "1+", -1)
    producer_epoch: Int16 = 0
    next_producer_epoch: Int16 = tag(3, "1+", -1)
    transaction_timeout_ms: Int32 = 0
    transaction_status: Int8 = 0
    transaction_partitions: list[PartitionsSchema] | None = []
    transaction_last_update_timestamp_ms: Int64 = 0
    transaction_start_timestamp_ms: Int64 = 0
    client_transaction_version: Int16 = tag(2, "1+", 0)
