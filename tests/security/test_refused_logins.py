"""Logins that are refused, and sessions that outlive the credential they began with, in every client."""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import aiokafka
import aiokafka.errors
import pytest
from confluent_kafka import KafkaError, Producer

from barnabas.broker.node import StartError
from barnabas.client.asyncio_network import connect
from barnabas.client.blocking import BlockingCluster, run
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.errors import AuthenticationError, ClientError
from barnabas.client.core.network import ConnectionSettings
from barnabas.security.clients.client_security import client_security
from barnabas.security.oauth.checking import UNSECURED_HANDLER
from barnabas.security.sasl.plain import PlainClient
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until

from .locked_broker import (
    LOCKED_LOGINS,
    MUTUAL,
    PASSWORD,
    PASSWORD_MECHANISMS,
    TLS,
    USER,
    Locked,
    Way,
    add_users,
    locked_broker,
)
from .provider import CLIENT_SECRET, claims, rsa_key, signed
from .round_trips import AiokafkaTokens
from .tls_world import certificates

OAUTH = LOCKED_LOGINS[3]
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
WITH_PASSWORD = [way for way in LOCKED_LOGINS if way.mechanism in PASSWORD_MECHANISMS]


@pytest.fixture(scope="module")
def broker(locked: Locked) -> Iterator[Broker]:
    with locked_broker(locked) as made:
        add_users(made.bootstrap)
        yield made


def ask(properties: dict[str, str]) -> None:
    addresses = parse_bootstrap(properties["bootstrap.servers"])
    with BlockingCluster(addresses, security=client_security(properties)) as cluster:
        run(cluster.refresh())


@pytest.mark.usefixtures("broker")
@pytest.mark.parametrize("way", WITH_PASSWORD, ids=str)
def test_our_client_says_that_the_password_is_wrong(locked: Locked, way: Way) -> None:
    with pytest.raises(AuthenticationError, match="Authentication failed"):
        ask(locked.java(way, password="wrong"))


@pytest.mark.usefixtures("broker")
@pytest.mark.parametrize("way", WITH_PASSWORD, ids=str)
def test_librdkafka_is_told_that_the_password_is_wrong(locked: Locked, way: Way) -> None:
    errors: list[KafkaError] = []
    settings = locked.librdkafka(way, password="wrong") | {"error_cb": errors.append, "log_level": 0}
    producer = Producer(settings)
    wait_until(
        lambda: producer.poll(0.05) < 0 or any(each.code() == KafkaError._AUTHENTICATION for each in errors),
        what="the error callback is told",
    )


def test_a_forged_token_is_refused_in_every_client(locked: Locked, broker: Broker, tmp_path: Path) -> None:
    forged = signed(claims(), rsa_key(1))  # the provider did not sign it
    file = tmp_path / "forged.jwt"
    file.write_text(forged)
    ours = locked.java(OAUTH) | {"sasl.oauthbearer.token.endpoint.url": file.as_uri()}
    with pytest.raises(AuthenticationError, match="invalid_token"):
        ask(ours)

    errors: list[KafkaError] = []
    settings = {
        name: value for name, value in locked.librdkafka(OAUTH).items() if "oauthbearer" not in name
    } | {"oauth_cb": lambda _: (forged, time.time() + 600), "error_cb": errors.append, "log_level": 0}
    producer = Producer(settings)
    wait_until(
        lambda: producer.poll(0.05) < 0 or any(each.code() == KafkaError._AUTHENTICATION for each in errors),
        what="the error callback of librdkafka is told",
    )

    class AsyncForgedTokens(AiokafkaTokens):
        async def token(self) -> str:
            return forged

    async def start() -> None:
        made = aiokafka.AIOKafkaProducer(
            **locked.python(OAUTH),
            ssl_context=ssl.create_default_context(cafile=certificates().ca_file),
            sasl_oauth_token_provider=AsyncForgedTokens(),
        )
        try:
            # aiokafka 0.14 takes the refusal for success, so that it may start; it gets no further.
            await made.start()
            await asyncio.wait_for(made.send_and_wait("forged", b"x"), 2)
        finally:
            await made.stop()

    with pytest.raises((aiokafka.errors.KafkaError, TimeoutError)):
        asyncio.run(start())
    with BlockingCluster(parse_bootstrap(broker.bootstrap)) as cluster:
        assert "forged" not in run(cluster.refresh(None)).topics


@pytest.mark.usefixtures("broker")
def test_a_certificate_is_missing_or_not_trusted(locked: Locked) -> None:
    with pytest.raises(ClientError):
        ask(locked.java(MUTUAL) | {"ssl.keystore.location": "", "ssl.keystore.type": "PEM"})
    with pytest.raises(ClientError, match="certificate"):
        ask(locked.java(TLS) | {"ssl.truststore.location": certificates().other_ca_file})


@pytest.mark.long
def test_a_session_goes_on_when_the_token_it_began_with_has_expired(locked: Locked, broker: Broker) -> None:
    """librdkafka and our client get new tokens and authenticate again on the same connection."""
    provider = locked.provider
    provider.life_s, before = 10, len(provider.forms)
    try:
        properties = locked.java(OAUTH) | {"sasl.oauthbearer.scope": "short"}
        settings = locked.librdkafka(OAUTH) | {"sasl.oauthbearer.scope": "short", "log_level": 0}
        failed: list[object] = []
        producer = Producer(settings | {"error_cb": failed.append})
        addresses = parse_bootstrap(properties["bootstrap.servers"])
        with BlockingCluster(addresses, security=client_security(properties)) as cluster:

            def work() -> bool:
                producer.produce(
                    "lasting", b"x", on_delivery=lambda error, _: failed.append(error) if error else None
                )
                producer.flush(10)
                run(cluster.refresh())
                return len([form for form in provider.forms[before:] if form.get("scope") == "short"]) >= 6

            wait_until(work, 60, "both clients have had three tokens")
        assert not failed
    finally:
        provider.life_s = 600
    assert CLIENT_SECRET not in str(failed)


class WaitingClient(PlainClient):
    """A login that waits for somebody else, here for the event loop itself."""

    is_slow = True
    may_go_on = threading.Event()

    def first(self) -> bytes:
        assert self.may_go_on.wait(10), "the event loop stood still"
        return super().first()


@pytest.mark.usefixtures("broker")
def test_a_login_that_waits_for_others_does_not_stop_the_event_loop(locked: Locked) -> None:
    way = LOCKED_LOGINS[0]
    properties = locked.java(way)
    security = replace(client_security(properties), new_exchange=lambda _: WaitingClient(USER, PASSWORD))

    async def log_in() -> None:
        [address] = parse_bootstrap(properties["bootstrap.servers"])
        asyncio.get_running_loop().call_later(0.05, WaitingClient.may_go_on.set)
        connection = await connect(address, ConnectionSettings(security=security))
        await connection.close()

    asyncio.run(log_in())


UNSIGNED = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "listener.name.plaintext.oauthbearer.sasl.jaas.config": OAUTH_MODULE
    + ' unsecuredLoginStringClaim_sub="b";',
}


def test_a_broker_takes_unsigned_tokens_only_if_its_settings_name_them() -> None:
    with pytest.raises(StartError, match="tokens cannot be checked"):
        Broker(overrides=UNSIGNED).start()
    named = {"listener.name.plaintext.oauthbearer.sasl.server.callback.handler.class": UNSECURED_HANDLER}
    with Broker(overrides=UNSIGNED | named) as broker:
        ask(
            {
                "bootstrap.servers": broker.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": OAUTH_MODULE + ' unsecuredLoginStringClaim_sub="alice";',
            }
        )
