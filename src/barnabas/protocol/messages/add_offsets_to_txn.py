"""AddOffsetsToTxn: a transaction will commit offsets of a consumer group."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.types import Int16, Int32, Int64, String


class AddOffsetsToTxnRequest(Message, key=25, versions="0-4", flexible="3+"):
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    group_id: String = ""


class AddOffsetsToTxnResponse(Message, key=25, versions="0-4", flexible="3+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
