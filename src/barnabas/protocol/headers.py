"""Headers in front of requests and responses.

The version of a header follows from the API and its version, see `apis`. A client id keeps its two-byte
length in all header versions, so that a broker can read it before it knows the API (KIP-482).
"""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.schema import since
from barnabas.protocol.types import Int16, Int32, String


class RequestHeader(Message, versions="1-2", flexible="2+"):
    request_api_key: Int16 = 0
    request_api_version: Int16 = 0
    correlation_id: Int32 = 0
    client_id: String | None = since("1+", "", flexible="none")


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    correlation_id: Int32 = 0
