"""Tokens and first messages of OAUTHBEARER on the wire: Barnabas says what Apache Kafka says."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.testing import Broker
from broker.conversation import Conversation

from .locked_broker import Locked
from .provider import claims, rsa_key, signed, signed_with_public_key, unsigned
from .tokens_on_the_wire import TAKEN, bearer, said_to

INVALID = '{"status":"invalid_token"}'
MALFORMED = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism OAUTHBEARER"
)


def now() -> int:
    return int(time.time())


def changed(**changes: Any) -> bytes:
    """A good token with other claims, also such that a library would not sign."""
    payload = {name: value for name, value in (claims() | changes).items() if value is not None}
    return bearer(jwt.PyJWS().encode(json.dumps(payload).encode(), rsa_key(), "RS256", {"kid": "one"}))


# Made when they are sent: the time of a token is that of its test.
MESSAGES: dict[str, tuple[Callable[[], bytes], str]] = {
    "good": (lambda: bearer(signed(claims())), TAKEN),
    "another algorithm of the key": (lambda: bearer(signed(claims(), alg="PS256")), TAKEN),
    "extensions": (lambda: bearer(signed(claims()), "cluster=x\x01"), TAKEN),
    "no kid": (lambda: bearer(signed(claims(), kid=None)), TAKEN),
    "unsigned": (lambda: bearer(unsigned(claims())), INVALID),
    "HMAC with the public key": (lambda: bearer(signed_with_public_key(claims(), rsa_key(), "one")), INVALID),
    "signed with another key": (lambda: bearer(signed(claims(), rsa_key(1))), INVALID),
    "unknown kid": (lambda: bearer(signed(claims(), kid="x")), INVALID),
    "iat in the future": (lambda: changed(iat=now() + 300), TAKEN),
    "iat after exp": (lambda: changed(iat=now() + 900), INVALID),
    "no iat": (lambda: changed(iat=None), INVALID),
    "nbf within the skew": (lambda: changed(nbf=now() + 20), TAKEN),
    "nbf in the future": (lambda: changed(nbf=now() + 3600), INVALID),
    "expired within the skew": (lambda: changed(exp=now() - 1, iat=now() - 100), TAKEN),
    "expired": (lambda: changed(exp=now() - 60, iat=now() - 100), INVALID),
    "no exp": (lambda: changed(exp=None), INVALID),
    "exp is a text": (lambda: changed(exp="soon"), INVALID),
    "exp is a fraction": (lambda: changed(exp=now() + 600.5), TAKEN),
    "exp is too large": (lambda: changed(exp=10**30), INVALID),
    "one of several audiences": (lambda: changed(aud=["x", "kafka"]), TAKEN),
    "no audience": (lambda: changed(aud=None), INVALID),
    "another audience": (lambda: changed(aud="x"), INVALID),
    "another issuer": (lambda: changed(iss="x"), INVALID),
    "no issuer": (lambda: changed(iss=None), INVALID),
    "no subject": (lambda: changed(sub=None), INVALID),
    "blank subject": (lambda: changed(sub=" "), INVALID),
    "subject is a number": (lambda: changed(sub=7), INVALID),
    "scopes": (lambda: changed(scope="a b"), TAKEN),
    "a list of scopes": (lambda: changed(scope=["a", "b"]), TAKEN),
    "no scopes": (lambda: changed(scope=[]), TAKEN),
    "empty scope": (lambda: changed(scope=""), INVALID),
    "scope twice": (lambda: changed(scope=["a", "a"]), INVALID),
    "not a token": (lambda: bearer("garbage"), INVALID),
    "a token with odd characters": (lambda: bearer("go/od"), INVALID),
    "authorization id": (lambda: bearer(signed(claims()), header="n,a=alice,"), TAKEN),
    "another authorization id": (
        lambda: bearer(signed(claims()), header="n,a=bob,"),
        "Authentication failed: Client requested an authorization id (bob) that is different from the "
        "token's principal name (alice)",
    ),
    "nothing": (lambda: b"", MALFORMED),
    "only a confirmation": (lambda: b"\x01", MALFORMED),
    "no auth": (lambda: b"n,,\x01\x01", MALFORMED),
    "no token": (lambda: b"n,,\x01auth=Bearer\x01\x01", MALFORMED),
    "no end": (lambda: b"n,,\x01auth=Bearer good", MALFORMED),
    "channel binding": (lambda: b"y,,\x01auth=Bearer x\x01\x01", MALFORMED),
    "extension that is not ASCII": (lambda: b"n,,\x01auth=Bearer good\x01k=\xff\x01\x01", MALFORMED),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_token_gets_the_same_response(running: Locked, name: str) -> None:
    message, expected = MESSAGES[name]
    assert said_to(running.ports["LOGIN"], message()) == expected


def test_another_request_in_place_of_the_confirmation_is_refused(running: Locked) -> None:
    """aiokafka takes the refusal for success and goes on with Metadata."""
    with Conversation(Broker.__new__(Broker), port=running.ports["LOGIN"]) as talk:
        talk.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
        answer = talk.ask(SaslAuthenticateRequest(auth_bytes=bearer("garbage")), 2)
        assert answer.error_code == ErrorCode.NONE and answer.auth_bytes == INVALID.encode()
        talk.send((MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="x")]), 12))
        assert talk.receive().topics[0].error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert talk.is_closed()


def test_the_session_lasts_as_long_as_the_token(running: Locked) -> None:
    with Conversation(Broker.__new__(Broker), port=running.ports["LOGIN"]) as talk:
        talk.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
        token = signed(claims(exp=int(time.time()) + 100))
        answer = talk.ask(SaslAuthenticateRequest(auth_bytes=bearer(token)), 2)
        assert 90_000 < answer.session_lifetime_ms <= 100_000
