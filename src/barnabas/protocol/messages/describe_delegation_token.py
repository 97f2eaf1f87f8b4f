"""DescribeDelegationToken: delegation tokens of some owners."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bytes, Int16, Int32, Int64, String


class DescribeDelegationTokenRequest(Message, key=41, versions="1-3", flexible="2+"):
    class DescribeDelegationTokenOwner(Struct):
        principal_type: String = ""
        principal_name: String = ""

    owners: list[DescribeDelegationTokenOwner] | None = []


class DescribeDelegationTokenResponse(Message, key=41, versions="1-3", flexible="2+"):
    class DescribedDelegationToken(Struct):
        class DescribedDelegationTokenRenewer(Struct):
            principal_type: String = ""
            principal_name: String = ""

        principal_type: String = ""
        principal_name: String = ""
        token_requester_principal_type: String = since("3+", "")
        token_requester_principal_name: String = since("3+", "")
        issue_timestamp: Int64 = 0
        expiry_timestamp: Int64 = 0
        max_timestamp: Int64 = 0
        token_id: String = ""
        hmac: Bytes = b""
        renewers: list[DescribedDelegationTokenRenewer] = []

    error_code: Int16 = 0
    tokens: list[DescribedDelegationToken] = []
    throttle_time_ms: Int32 = 0
