"""RenewDelegationToken: let a delegation token live longer."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.types import Bytes, Int16, Int32, Int64


class RenewDelegationTokenRequest(Message, key=39, versions="1-2", flexible="2+"):
    hmac: Bytes = b""
    renew_period_ms: Int64 = 0


class RenewDelegationTokenResponse(Message, key=39, versions="1-2", flexible="2+"):
    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0
