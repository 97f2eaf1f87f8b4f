"""CreateDelegationToken: issue a delegation token."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bytes, Int16, Int32, Int64, String


class CreateDelegationTokenRequest(Message, key=38, versions="1-3", flexible="2+"):
    class CreatableRenewers(Struct):
        principal_type: String = ""
        principal_name: String = ""

    owner_principal_type: String | None = since("3+", "")
    owner_principal_name: String | None = since("3+", "")
    renewers: list[CreatableRenewers] = []
    max_lifetime_ms: Int64 = 0


class CreateDelegationTokenResponse(Message, key=38, versions="1-3", flexible="2+"):
    error_code: Int16 = 0
    principal_type: String = ""
    principal_name: String = ""
    token_requester_principal_type: String = since("3+", "")
    token_requester_principal_name: String = since("3+", "")
    issue_timestamp_ms: Int64 = 0
    expiry_timestamp_ms: Int64 = 0
    max_timestamp_ms: Int64 = 0
    token_id: String = ""
    hmac: Bytes = b""
    throttle_time_ms: Int32 = 0
