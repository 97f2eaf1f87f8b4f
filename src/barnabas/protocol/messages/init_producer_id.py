"""InitProducerId: get a producer id and epoch, fencing older producers with the same transactional id."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bool, Int16, Int32, Int64, String


class InitProducerIdRequest(Message, key=22, versions="0-6", flexible="2+"):
    transactional_id: String | None = ""
    transaction_timeout_ms: Int32 = 0
    producer_id: Int64 = since("3+", -1)
    producer_epoch: Int16 = since("3+", -1)
    enable2_pc: Bool = since("6+", False)
    keep_prepared_txn: Bool = since("6+", False)


class InitProducerIdResponse(Message, key=22, versions="0-6", flexible="2+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0
    ongoing_txn_producer_id: Int64 = since("6+", -1)
    ongoing_txn_producer_epoch: Int16 = since("6+", -1)
