"""Confluent's client with a registry that asks for passwords, tokens and certificates over HTTPS."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from barnabas.services.callers.users import hashed_password
from registry.running import instant, running
from security.provider import AUDIENCE, ISSUER, claims, public_jwk, rsa_key, signed
from security.tls_world import certificates

SCHEMA = Schema('{"type": "string"}', "AVRO")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("registry")
    users: Path = folder / "users"
    users.write_text(
        f"reader: read-s3cret,viewers\nwriter: {hashed_password('write-s3cret', 1000)},developers\n"
    )
    keys: Path = folder / "jwks.json"
    keys.write_text(json.dumps({"keys": [public_jwk(rsa_key(), "one")]}))
    given = {
        "listeners": "https://127.0.0.1:0",
        **certificates().stores,
        "ssl.client.authentication": "REQUESTED",
        "authentication.method": "BASIC,BEARER",
        "barnabas.authentication.users.file": str(users),
        "barnabas.authentication.roles.read": "viewers",
        "barnabas.authentication.roles.write": "developers",
        "oauthbearer.jwks.endpoint.url": f"file://{keys}",
        "oauthbearer.expected.audience": AUDIENCE,
        "oauthbearer.expected.issuer": ISSUER,
    }
    with running(instant, given) as found:
        yield found


def client(url: str, **more: str) -> SchemaRegistryClient:
    given = {name.replace("_", "."): value for name, value in more.items()}
    return SchemaRegistryClient({"url": url, "ssl.ca.location": certificates().ca_file, **given})


def context_of() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificates().ca_file)


def test_roles_of_users_bound_what_confluents_client_may_do(url: str) -> None:
    with (
        client(url, basic_auth_user_info="writer:write-s3cret") as writer,
        client(url, basic_auth_user_info="reader:read-s3cret") as reader,
    ):
        number = writer.register_schema("orders-value", SCHEMA)
        assert reader.get_schema(number).schema_str == '"string"'
        assert reader.lookup_schema("orders-value", SCHEMA).version == 1
        with pytest.raises(SchemaRegistryError, match="reader has no role with the right to write") as caught:
            reader.register_schema("others-value", SCHEMA)
        assert caught.value.http_status_code == 403
        assert reader.get_subjects() == ["orders-value"]


def test_wrong_passwords_and_no_passwords_are_refused(url: str) -> None:
    for given in ({"basic_auth_user_info": "reader:wrong"}, {}):
        with client(url, **given) as stranger, pytest.raises(SchemaRegistryError) as caught:
            stranger.get_subjects()
        assert (caught.value.http_status_code, caught.value.error_code) == (401, 401)


def test_tokens_of_an_identity_provider_carry_roles_as_scopes(url: str) -> None:
    with httpx.Client(verify=context_of(), base_url=url, trust_env=False) as http:
        token = signed(claims("alice", scope="viewers"))
        assert http.get("/subjects", headers={"authorization": f"Bearer {token}"}).status_code == 200
        config = {"compatibility": "NONE"}
        refused = http.put("/config", json=config, headers={"authorization": f"Bearer {token}"})
        assert (refused.status_code, refused.json()["error_code"]) == (403, 403)
        assert http.get("/health").status_code == 200
        assert http.get("/metrics").status_code == 401


def test_a_certificate_alone_has_a_name_and_no_role(url: str) -> None:
    context = context_of()
    context.load_cert_chain(certificates().alice_file)
    with httpx.Client(verify=context, base_url=url, trust_env=False) as http:
        refused = http.get("/subjects")
        assert refused.status_code == 403
        assert "CN=alice,OU=clients,O=Rig has no role" in refused.json()["message"]
