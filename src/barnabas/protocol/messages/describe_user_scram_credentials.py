"""DescribeUserScramCredentials: which SCRAM credentials users have."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import Int8, Int16, Int32, String


class DescribeUserScramCredentialsRequest(Message, key=50, versions="0", flexible="0+"):
    class UserName(Struct):
        name: String = ""

    users: list[UserName] | None = []


class DescribeUserScramCredentialsResponse(Message, key=50, versions="0", flexible="0+"):
    class DescribeUserScramCredentialsResult(Struct):
        class CredentialInfo(Struct):
            mechanism: Int8 = 0
            iterations: Int32 = 0

        user: String = ""
        error_code: Int16 = 0
        error_message: String | None = ""
        credential_infos: list[CredentialInfo] = []

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    results: list[DescribeUserScramCredentialsResult] = []
