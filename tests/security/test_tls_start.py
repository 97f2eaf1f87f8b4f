"""A node with TLS settings that cannot work does not start, and says what to change."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest

from barnabas.broker.node import StartError
from barnabas.security.clients.client_security import client_security
from barnabas.security.tls.certificates import issue

from .tls_world import HOSTS, NOW, TlsBroker, certificates


def refusal(**settings: object) -> str:
    broker = TlsBroker(**settings)
    with pytest.raises(StartError) as refused:
        broker.start()
    return str(refused.value)


def test_a_missing_key_store_is_named() -> None:
    said = refusal(ssl_keystore_location="")
    assert said.startswith("listener CLIENTS://127.0.0.1:")
    assert "ssl.keystore.location is not set" in said and "barnabas certs" in said


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"ssl.keystore.location": "/nowhere"}, "/nowhere cannot be read: No such file or directory"),
        ({"ssl.keystore.type": "PKCS12"}, "set ssl.keystore.type to the format of the file"),
        ({"ssl.truststore.location": "/nowhere"}, "ssl.truststore.location: /nowhere cannot be read"),
        ({"ssl.keystore.password": "x"}, "a PEM store has no password of its own"),
        ({"ssl.enabled.protocols": "TLSv1"}, "none of TLSv1 is supported; use TLSv1.2 or TLSv1.3"),
        ({"ssl.protocol": "SSLv3"}, "ssl.protocol: SSLv3 is not supported; use TLSv1.3"),
        ({"ssl.cipher.suites": "TLS_FOO"}, "none of TLS_FOO is known to OpenSSL"),
        (
            {"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256", "ssl.enabled.protocols": "TLSv1.2"},
            "no suite is for a version of ssl.enabled.protocols",
        ),
        ({"ssl.principal.mapping.rules": "RULE:x"}, "is not a rule; write RULE:pattern/replacement/"),
        (
            {"inter.broker.listener.name": "CLIENTS", "ssl.truststore.location": "other"},
            "this node's own trust store refuses its certificate",
        ),
    ],
)
def test_a_wrong_setting_is_named_with_the_remedy(settings: dict[str, str], said: str) -> None:
    known = {"other": certificates().other_ca_file}
    assert said in refusal(**{name: known.get(value, value) for name, value in settings.items()})


def test_a_certificate_that_has_expired_is_refused_between_brokers(tmp_path: Path) -> None:
    expired = issue(certificates().authority, "CN=broker", NOW, hosts=HOSTS, days=-1)
    path = tmp_path / "expired.pem"
    path.write_bytes(expired.key_pem + expired.chain_pem)
    said = refusal(**{"inter.broker.listener.name": "CLIENTS", "ssl.keystore.location": path})
    assert "certificate has expired; renew it" in said


def test_a_client_uses_no_newer_version_than_it_is_told() -> None:
    for protocol, newest in (("TLSv1.2", ssl.TLSVersion.TLSv1_2), ("TLSv1.3", ssl.TLSVersion.TLSv1_3)):
        properties = {"security.protocol": "SSL", "ssl.protocol": protocol}
        context = client_security(properties).tls
        assert context is not None and context.maximum_version == newest


def test_only_the_suites_and_versions_of_the_settings_are_used() -> None:
    suites = "TLS_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    with TlsBroker(**{"ssl.cipher.suites": suites}) as broker:

        def chosen(version: ssl.TLSVersion) -> str | None:
            context = ssl.create_default_context(cafile=certificates().ca_file)
            context.maximum_version = version
            with (
                socket.create_connection(("127.0.0.1", broker.port), 20) as plain,
                context.wrap_socket(plain, server_hostname="localhost") as talk,
            ):
                talk.sendall(b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff")
                return (talk.cipher() or [""])[0] if talk.recv(4096) else None

        assert chosen(ssl.TLSVersion.TLSv1_2) == "ECDHE-ECDSA-AES128-GCM-SHA256"
        assert chosen(ssl.TLSVersion.TLSv1_3) == "TLS_AES_128_GCM_SHA256"
