"""Bearer tokens sent to a broker as a client sends them, and what the broker says."""

from __future__ import annotations

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.testing import Broker
from broker.conversation import Conversation

TAKEN, CLOSED = "taken", "closed"


def said_to(port: int, message: bytes) -> str:
    """The outcome of a login with this first message: taken, closed, or the text of its error."""
    with Conversation(Broker.__new__(Broker), port=port) as talk:
        shaken = talk.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
        assert shaken.error_code == ErrorCode.NONE, shaken
        try:
            answer: SaslAuthenticateResponse = talk.ask(SaslAuthenticateRequest(auth_bytes=message), 2)
            if answer.error_code == ErrorCode.NONE and answer.auth_bytes:
                answer = talk.ask(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
                assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        except ConnectionError:
            return CLOSED
        if answer.error_code == ErrorCode.NONE:
            return TAKEN
        assert talk.is_closed()
        return str(answer.error_message)


def bearer(token: str, more: str = "", header: str = "n,,") -> bytes:
    return f"{header}\x01auth=Bearer {token}\x01{more}\x01".encode()
