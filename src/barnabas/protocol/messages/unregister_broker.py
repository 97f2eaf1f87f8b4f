"""UnregisterBroker: remove a broker that is gone from the cluster."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.types import Int16, Int32, String


class UnregisterBrokerRequest(Message, key=64, versions="0", flexible="0+"):
    broker_id: Int32 = 0


class UnregisterBrokerResponse(Message, key=64, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
