"""SaslHandshake: choose a SASL mechanism."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.types import Int16, String


class SaslHandshakeRequest(Message, key=17, versions="0-1"):
    mechanism: String = ""


class SaslHandshakeResponse(Message, key=17, versions="0-1"):
    error_code: Int16 = 0
    mechanisms: list[String] = []
