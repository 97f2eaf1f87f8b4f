"""ExpireDelegationToken: let a delegation token expire sooner."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.types import Bytes, Int16, Int32, Int64


class ExpireDelegationTokenRequest(Message, key=40, versions="1-2", flexible="2+"):
    hmac: Bytes = b""
    expiry_time_period_ms: Int64 = 0


class ExpireDelegationTokenResponse(Message, key=40, versions="1-2", flexible="2+"):
    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0
