"""The proxy logs in at the brokers as its callers: they see and do what the brokers allow them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.blocking import run
from barnabas.rest.application.from_settings import service
from barnabas.security.acls.rules import Rule
from barnabas.security.acls.vocabulary import Operation, PatternType, Permission, ResourceType
from barnabas.testing.broker import Broker
from security.provider import AUDIENCE, ISSUER, claims, public_jwk, rsa_key, signed
from security.sasl_broker import ADMIN, SASL_SETTINGS, USERS, add_scram_user, as_admin, plain_entry
from services.hosted import hosted

V2 = {"content-type": "application/vnd.kafka.json.v2+json", "accept": "application/vnd.kafka.v2+json"}
RECORD = b'{"records": [{"value": 1}]}'
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a key set."""
    file: Path = tmp_path_factory.mktemp("keys") / "jwks.json"
    file.write_text(json.dumps({"keys": [public_jwk(rsa_key(), "one")]}))
    return f"file://{file}"


@pytest.fixture(scope="module")
def broker(keys: str) -> Iterator[Broker]:
    """Alice and carol may use the topic `hers`; nobody but the administrator may do anything else."""
    overrides = {
        **SASL_SETTINGS,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
        "listener.name.plaintext.oauthbearer.sasl.jaas.config": OAUTH,
        "listener.name.plaintext.plain.sasl.jaas.config": plain_entry(),
        "sasl.oauthbearer.jwks.endpoint.url": keys,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "connection.failed.authentication.delay.ms": "10",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }
    with Broker(overrides=overrides) as found:
        add_scram_user(found, "carol", "carol-s3cret")
        with as_admin(found) as cluster:
            admin = Admin(cluster)
            for name in ("hers", "others"):
                run(admin.create_topic(NewTopic(name, 1, 1)))
            run(admin.create_acls([allowed(name) for name in ("alice", "carol")]))
        yield found


def allowed(name: str) -> Rule:
    return Rule(
        ResourceType.TOPIC, "hers", PatternType.LITERAL, f"User:{name}", "*", Operation.ALL, Permission.ALLOW
    )


def proxy(broker: Broker, keys: str, mechanism: str = "PLAIN") -> AbstractAsyncContextManager[Any]:
    return hosted(
        make=service,
        bootstrap_servers=broker.bootstrap,
        client_security_protocol="SASL_PLAINTEXT",
        client_sasl_mechanism="PLAIN",
        client_sasl_jaas_config=plain_entry({}, ADMIN),
        authentication_method="BASIC,BEARER",
        confluent_rest_auth_propagate_method="JETTY_AUTH",
        barnabas_propagate_sasl_mechanism=mechanism,
        oauthbearer_jwks_endpoint_url=keys,
        oauthbearer_expected_audience=AUDIENCE,
        oauthbearer_expected_issuer=ISSUER,
    )


async def topics(client: httpx.AsyncClient, **given: Any) -> tuple[int, list[str]]:
    response = await client.get(
        "/topics", headers={"accept": V2["accept"], **given.pop("headers", {})}, **given
    )
    return response.status_code, response.json() if response.status_code == 200 else []


def test_callers_have_the_rights_of_their_own_names(broker: Broker, keys: str) -> None:
    async def check() -> None:
        async with proxy(broker, keys) as (_, (place,)), httpx.AsyncClient(base_url=str(place)) as client:
            alice = ("alice", USERS["alice"])
            assert await topics(client, auth=alice) == (200, ["hers"])
            assert await topics(client, auth=("bob", USERS["bob"])) == (200, [])
            assert await topics(client, auth=("alice", "wrong")) == (401, [])
            assert await topics(client) == (401, [])
            made = await client.post("/topics/hers", content=RECORD, headers=V2, auth=alice)
            assert made.json()["offsets"][0]["offset"] == 0, made.text
            refused = await client.post("/topics/others", content=RECORD, headers=V2, auth=alice)
            assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)
            token = {"authorization": f"Bearer {signed(claims('alice'))}"}
            assert await topics(client, headers=token) == (200, ["hers"])

    asyncio.run(check())


def test_passwords_of_scram_users_are_carried_too(broker: Broker, keys: str) -> None:
    async def check() -> None:
        async with (
            proxy(broker, keys, "SCRAM-SHA-256") as (_, (place,)),
            httpx.AsyncClient(base_url=str(place)) as client,
        ):
            assert await topics(client, auth=("carol", "carol-s3cret")) == (200, ["hers"])
            assert await topics(client, auth=("carol", "wrong")) == (401, [])

    asyncio.run(check())
