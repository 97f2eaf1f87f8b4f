"""EndTxn: commit or abort a transaction."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bool, Int16, Int32, Int64, String


class EndTxnRequest(Message, key=26, versions="0-5", flexible="3+"):
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: Bool = False


class EndTxnResponse(Message, key=26, versions="0-5", flexible="3+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = since("5+", -1, ignorable=True)
    producer_epoch: Int16 = since("5+", -1, ignorable=True)
