"""AlterUserScramCredentials: set or remove SCRAM credentials of users."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import Bytes, Int8, Int16, Int32, String


class AlterUserScramCredentialsRequest(Message, key=51, versions="0", flexible="0+"):
    class ScramCredentialDeletion(Struct):
        name: String = ""
        mechanism: Int8 = 0

    class ScramCredentialUpsertion(Struct):
        name: String = ""
        mechanism: Int8 = 0
        iterations: Int32 = 0
        salt: Bytes = b""
        salted_password: Bytes = b""

    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


class AlterUserScramCredentialsResponse(Message, key=51, versions="0", flexible="0+"):
    class AlterUserScramCredentialsResult(Struct):
        user: String = ""
        error_code: Int16 = 0
        error_message: String | None = ""

    throttle_time_ms: Int32 = 0
    results: list[AlterUserScramCredentialsResult] = []
