"""Envelope: a broker forwards a client's request to the controller."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.types import Bytes, Int16


class EnvelopeRequest(Message, key=58, versions="0", flexible="0+"):
    request_data: Bytes = b""
    request_principal: Bytes | None = b""
    client_host_address: Bytes = b""


class EnvelopeResponse(Message, key=58, versions="0", flexible="0+"):
    response_data: Bytes | None = None
    error_code: Int16 = 0
