"""SaslAuthenticate: one step of a SASL exchange."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bytes, Int16, Int64, String


class SaslAuthenticateRequest(Message, key=36, versions="0-2", flexible="2+"):
    auth_bytes: Bytes = b""


class SaslAuthenticateResponse(Message, key=36, versions="0-2", flexible="2+"):
    error_code: Int16 = 0
    error_message: String | None = ""
    auth_bytes: Bytes = b""
    session_lifetime_ms: Int64 = since("1+", 0, ignorable=True)
