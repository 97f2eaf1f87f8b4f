"""Names of records in schemas' texts, and addresses and logins of registries."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.schemas.registry import Registered, Registry, RegistryUnavailable, names_in
from barnabas.security.errors import SecuritySettingsError
from barnabas.security.tls.certificates import Issued, issue, new_authority
from broker.small_registry import SmallRegistry
from settings.nodes import node

URL = "confluent.schema.registry.url"
SEVEN = b"\0\0\0\0\7"

PROTO = """
syntax = "proto3";
package a.b;  // message Comment {}
/* message Other {} */
option x = "message Text {";
message M {
  message N { enum E { Z = 0; } message O {} }
  oneof o { int32 i = 1; }
  map<string, N> m = 2;
}
message P {}
"""


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ({"schema": '{"type":"record","name":"R","namespace":"a.b","fields":[]}'}, {"a.b.R"}),
        ({"schema": '{"type":"record","name":"x.R","namespace":"a.b","fields":[]}'}, {"x.R"}),
        ({"schema": '{"type":"record","name":"R","fields":[]}'}, {"R"}),
        ({"schema": '"string"'}, set()),
        ({"schema": "no json"}, set()),
        ({"schema": "[" * 100_000}, set()),
        ({"schema": '{"title":"T"}', "schemaType": "JSON"}, {"T"}),
        ({"schema": '{"title":5}', "schemaType": "JSON"}, set()),
        ({"schema": "true", "schemaType": "JSON"}, set()),
        ({"schema": PROTO, "schemaType": "PROTOBUF"}, {"a.b.M", "a.b.M.N", "a.b.M.N.O", "a.b.P"}),
        ({"schema": "message M {} message N {}", "schemaType": "PROTOBUF"}, {"M", "N"}),
        ({"schema": "}}}} message M {", "schemaType": "PROTOBUF"}, {"M"}),
        ({}, set()),
    ],
)
def test_names_of_records_are_found_in_texts(schema: dict[str, str], names: set[str]) -> None:
    assert names_in(schema) == names


def registry_at(url: str, **more: str) -> Registry:
    return Registry(node(**{URL: url, **more}))


@pytest.fixture
def small() -> Iterator[SmallRegistry]:
    small = SmallRegistry(login="me:p@ss")
    small.register(7, "t-value")
    yield small
    small.close()


FOUND = Registered(frozenset(["t-value"]), frozenset())


def test_name_and_password_come_from_the_address_or_from_a_setting(small: SmallRegistry) -> None:
    assert registry_at(small.url.replace("//", "//me:p%40ss@")).find(SEVEN, with_names=False) == FOUND
    source = {"confluent.basic.auth.credentials.source": "USER_INFO"}
    info = {"confluent.basic.auth.user.info": "me:p@ss"}
    assert registry_at(small.url, **source, **info).find(SEVEN, with_names=False) == FOUND
    with pytest.raises(RegistryUnavailable, match="401") as refusal:
        registry_at(small.url.replace("//", "//me:wrong@")).find(SEVEN, with_names=False)
    assert "wrong" not in str(refusal.value)


def test_a_token_is_sent(small: SmallRegistry) -> None:
    small.login = "Bearer abc"
    assert (
        registry_at(small.url, **{"confluent.bearer.auth.token": "abc"}).find(SEVEN, with_names=False)
        == FOUND
    )


def test_the_client_tries_the_next_address_if_one_does_not_respond(small: SmallRegistry) -> None:
    small.login = None
    registry = registry_at(f"http://127.0.0.1:1,{small.url}/")
    assert registry.find(SEVEN, with_names=False) == FOUND
    assert registry.urls == [small.url, "http://127.0.0.1:1"]


@pytest.mark.parametrize("url", ["ftp://a", "a:8081", "file:///etc/passwd", "me:secret@host"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(SecuritySettingsError, match=URL) as refusal:
        registry_at(url)
    assert "secret" not in str(refusal.value)


def stored(folder: Path, name: str, content: bytes) -> str:
    path = folder / name
    path.write_bytes(content)
    return str(path)


def test_tls_with_certificates_on_both_sides(tmp_path: Path) -> None:
    now = datetime.datetime.now(datetime.UTC)
    authority = new_authority("CN=CA", now)

    def files(issued: Issued) -> tuple[str, str]:
        return stored(tmp_path, "c.pem", issued.chain_pem), stored(tmp_path, "k.pem", issued.key_pem)

    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*files(issue(authority, "CN=registry", now, hosts=["127.0.0.1"])))
    server.load_verify_locations(stored(tmp_path, "ca.pem", authority.certificate_pem))
    server.verify_mode = ssl.CERT_REQUIRED
    small = SmallRegistry(tls=server)
    small.register(7, "t-value")
    trust = stored(tmp_path, "trust.p12", authority.trust_pkcs12("ca", "trusted"))
    keys = stored(tmp_path, "keys.p12", issue(authority, "CN=broker", now).pkcs12("broker", "secret"))
    trusting = {
        "confluent.ssl.truststore.location": trust,
        "confluent.ssl.truststore.password": "trusted",
        "confluent.ssl.truststore.type": "PKCS12",
    }
    known = {
        "confluent.ssl.keystore.location": keys,
        "confluent.ssl.keystore.password": "secret",
        "confluent.ssl.key.password": "secret",
        "confluent.ssl.keystore.type": "PKCS12",
    }
    try:
        assert registry_at(small.url, **trusting, **known).find(SEVEN, with_names=False) == FOUND
        for lacking in (trusting, known, {**trusting, "confluent.ssl.truststore.password": "wrong"}):
            with pytest.raises(RegistryUnavailable) as refusal:
                registry_at(small.url, **lacking).find(SEVEN, with_names=False)
            assert "wrong" not in str(refusal.value)
    finally:
        small.close()
