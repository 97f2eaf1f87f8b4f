"""The messages of OAUTHBEARER, both sides, without a network."""

import pytest

from barnabas.security.errors import AuthenticationFailed
from barnabas.security.sasl.mechanism import Identity
from barnabas.security.sasl.oauthbearer import (
    OAuthBearerClient,
    OAuthBearerServer,
    TokenRefused,
    check_extensions,
    parse_first_message,
)


def check(token: str) -> Identity:
    if token != "good":
        raise TokenRefused("it is not good")
    return Identity("alice", expires_at_ms=5)


def test_a_good_token_is_a_login_in_one_step() -> None:
    server, client = OAuthBearerServer(check), OAuthBearerClient("good")
    assert server.identity is None
    assert client.step(server.step(client.first())) is None
    assert server.identity == Identity("alice", expires_at_ms=5)


def test_a_refused_token_fails_after_the_client_confirmed_the_refusal() -> None:
    server, client = OAuthBearerServer(check), OAuthBearerClient("bad")
    told = server.step(client.first())
    assert told == b'{"status":"invalid_token"}'
    assert server.identity is None
    confirmation = client.step(told)
    assert confirmation == b"\x01"
    with pytest.raises(AuthenticationFailed) as failed:
        server.step(confirmation)
    assert failed.value.told == '{"status":"invalid_token"}'
    assert "it is not good" in failed.value.reason
    assert server.identity is None


def test_a_client_cannot_try_another_token_after_a_refusal() -> None:
    server = OAuthBearerServer(check)
    server.step(OAuthBearerClient("bad").first())
    with pytest.raises(AuthenticationFailed):
        server.step(OAuthBearerClient("good").first())


def test_extensions_and_authorization_id_are_read() -> None:
    client = OAuthBearerClient("t", {"cluster": "lkc-1", "pool": "a=b"}, "a,b=c")
    assert client.first() == b"n,a=a=2Cb=3Dc,\x01auth=Bearer t\x01cluster=lkc-1\x01pool=a=b\x01\x01"
    assert parse_first_message(client.first()) == (
        "t",
        "a,b=c",
        {"cluster": "lkc-1", "pool": "a=b"},
    )


def test_the_authorization_id_must_be_the_subject() -> None:
    OAuthBearerServer(check).step(OAuthBearerClient("good", authorization_id="alice").first())
    with pytest.raises(AuthenticationFailed, match="authorization id 'bob'"):
        OAuthBearerServer(check).step(OAuthBearerClient("good", authorization_id="bob").first())


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer good",
        b"n,,\x01auth=Bearer good\x01",
        b"n,,\x01auth=Basic good\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01AUTH=Bearer good\x01\x01",
        b"y,,\x01auth=Bearer good\x01\x01",
        b"p=tls,,\x01auth=Bearer good\x01\x01",
        b"n,b=x,\x01auth=Bearer good\x01\x01",
        b"n,a=,\x01auth=Bearer good\x01\x01",
        b"n,a==2,\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer good\x01k1=v\x01\x01",
        b"n,,\x01auth=Bearer good\x01k=\x01\x01",
        b"n,,\x01auth=Bearer good\x01k=\xff\x01\x01",
        b"n,,\x01auth=Bearer good\x01k=\xc3\xa4\x01\x01",
        b"\x00alice\x00secret",
    ],
)
def test_a_malformed_first_message_is_refused_at_once(message: bytes) -> None:
    server = OAuthBearerServer(check)
    with pytest.raises(AuthenticationFailed, match="malformed first message") as failed:
        server.step(message)
    assert "invalid credentials with SASL mechanism OAUTHBEARER" in failed.value.told
    assert server.identity is None


def test_extensions_that_cannot_be_sent_are_named() -> None:
    assert check_extensions({"cluster": "a"}) is None
    assert "auth" in (check_extensions({"auth": "x"}) or "")
    assert "a1" in (check_extensions({"a1": "x"}) or "")
    assert "pool" in (check_extensions({"pool": "x\x01"}) or "")
