"""Both sides of GSSAPI with tickets of a real KDC, without a network between them."""

import builtins
from typing import Any

import pytest

from barnabas.security.errors import AuthenticationFailed, SecuritySettingsError
from barnabas.security.sasl import gssapi as mechanism
from barnabas.security.sasl.gssapi import GssapiClient, GssapiServer, default_realm, server_credentials
from barnabas.security.sasl.kerberos_names import parse_rules
from barnabas.security.sasl.mechanism import Identity

from .kdc import HOST, REALM, SERVICE, Kdc


def server_of(kdc: Kdc, *rules: str) -> GssapiServer:
    names = parse_rules(rules or ("DEFAULT",), default_realm(SERVICE))
    return GssapiServer(server_credentials(kdc.options(SERVICE)), names)


def log_in(client: Any, server: GssapiServer) -> Identity | None:
    message = client.first()
    while True:
        response = server.step(message)
        message = client.step(response)
        if message is None:
            return server.identity


def test_a_ticket_is_a_login(kdc: Kdc) -> None:
    client = GssapiClient("kafka", HOST, kdc.options(f"alice@{REALM}"))
    assert log_in(client, server_of(kdc)) == Identity("alice")


def test_rules_name_the_user(kdc: Kdc) -> None:
    rule = f"RULE:[2:$1@$0](etl@{REALM})s/.*/loader/"
    client = GssapiClient("kafka", HOST, kdc.options(f"etl/h1@{REALM}"))
    assert log_in(client, server_of(kdc, rule)) == Identity("loader")
    client = GssapiClient("kafka", HOST, kdc.options(f"alice@{REALM}"))
    with pytest.raises(AuthenticationFailed, match="no rule"):
        log_in(client, server_of(kdc, rule))


def test_nobody_is_logged_in_before_the_last_message(kdc: Kdc) -> None:
    client, server = GssapiClient("kafka", HOST, kdc.options(f"alice@{REALM}")), server_of(kdc)
    offer = server.step(client.step(server.step(client.first())) or b"")
    assert server.identity is None
    with pytest.raises(AuthenticationFailed):
        server.step(offer)
    assert server.identity is None


@pytest.mark.parametrize("message", [b"", b"\x60", b"nonsense", b"\x00" * 100_000])
def test_a_token_that_is_none_is_refused(kdc: Kdc, message: bytes) -> None:
    server = server_of(kdc)
    with pytest.raises(AuthenticationFailed) as failed:
        for _ in range(20):
            server.step(message)
    assert "invalid credentials with SASL mechanism GSSAPI" in failed.value.told
    assert server.identity is None


def test_a_ticket_for_another_service_is_refused(kdc: Kdc) -> None:
    kdc.key_table(f"http/{HOST}@{REALM}")
    client = GssapiClient("http", HOST, kdc.options(f"alice@{REALM}"))
    with pytest.raises(AuthenticationFailed, match="token is refused"):
        server_of(kdc).step(client.first())


def test_a_replayed_login_stops_at_the_security_layer(kdc: Kdc) -> None:
    client, seen = GssapiClient("kafka", HOST, kdc.options(f"alice@{REALM}")), []
    server = server_of(kdc)
    message: bytes | None = client.first()
    while message is not None:
        seen.append(message)
        message = client.step(server.step(message))
    assert server.identity is not None
    other = server_of(kdc)
    with pytest.raises(AuthenticationFailed):
        for message in seen:
            other.step(message)
    assert other.identity is None


def test_a_client_says_why_it_has_no_ticket(kdc: Kdc) -> None:
    client = GssapiClient("nothing", HOST, kdc.options(f"alice@{REALM}"))
    with pytest.raises(AuthenticationFailed, match=f"no Kerberos ticket for nothing@{HOST}: .*not found"):
        client.first()
    lost = kdc.options(f"alice@{REALM}") | {"keyTab": "/nowhere/x.keytab", "principal": "zoe@X"}
    with pytest.raises(AuthenticationFailed, match="no Kerberos ticket"):
        GssapiClient("kafka", HOST, lost).first()


def test_a_broker_without_its_key_does_not_start(kdc: Kdc) -> None:
    with pytest.raises(SecuritySettingsError, match=r"/nowhere/k\.keytab"):
        server_credentials({"keyTab": "/nowhere/k.keytab", "principal": SERVICE})
    with pytest.raises(SecuritySettingsError, match="no key of bob"):
        server_credentials(kdc.options(SERVICE) | {"principal": f"bob@{REALM}"})


def test_the_error_without_the_library_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "gssapi":
            raise ImportError("no module named gssapi")
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(SecuritySettingsError, match=r"barnabas\[kerberos\]"):
        mechanism.library()
