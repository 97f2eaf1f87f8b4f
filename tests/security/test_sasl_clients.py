"""Clients log in at a listener with SASL: those of others, and both faces of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from tests.security.sasl_broker import (
    SASL_SETTINGS,
    USERS,
    add_scram_user,
    as_admin,
    client_properties,
    cluster_of,
)
from tests.security.token_scripts import Create, token_properties, user

from barnabas.client.admin.admin import Admin
from barnabas.client.asyncio_network import connect
from barnabas.client.blocking import run
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.errors import AuthenticationError
from barnabas.client.core.network import ConnectionSettings
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.security.clients.client_security import client_security
from barnabas.testing import apache
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until

JAVA = Path(__file__).with_name("JavaTls.java")
BEARER = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="alice";'
)
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
TIMEOUT = 10


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    more = {
        "connection.failed.authentication.delay.ms": "10",
        "delegation.token.secret.key": "of the cluster",
        "listener.name.plaintext.scram-sha-256.connections.max.reauth.ms": "1300",
    }
    with Broker(overrides={**SASL_SETTINGS, **more}) as broker:
        for mechanism in MECHANISMS[1:]:
            add_scram_user(broker, "alice", USERS["alice"], mechanism)
        yield broker


def librdkafka(broker: Broker, mechanism: str, password: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": password,
        "logger": None,
        **more,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_produces_and_consumes(broker: Broker, mechanism: str) -> None:
    topic = f"librdkafka-{mechanism}"
    settings = librdkafka(broker, mechanism, USERS["alice"])
    producer = Producer(settings)
    producer.produce(topic, b"value")
    assert producer.flush(TIMEOUT) == 0
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    message = consumer.poll(TIMEOUT)
    assert message is not None and message.value() == b"value"
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_is_told_that_the_password_is_wrong(broker: Broker, mechanism: str) -> None:
    errors: list[KafkaError] = []
    producer = Producer(librdkafka(broker, mechanism, "wrong", error_cb=errors.append))
    for _ in range(100):
        producer.poll(0.1)
        if any(error.code() == KafkaError._AUTHENTICATION for error in errors):
            break
    assert any(error.code() == KafkaError._AUTHENTICATION for error in errors)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_produces(broker: Broker, mechanism: str) -> None:
    kafka = pytest.importorskip("kafka")
    producer = kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username="alice",
        sasl_plain_password=USERS["alice"],
    )
    assert producer.send(f"kafka-python-{mechanism}", b"value").get(TIMEOUT).offset == 0
    producer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_produces(broker: Broker, mechanism: str) -> None:
    aiokafka = pytest.importorskip("aiokafka")

    async def produce() -> int:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username="alice",
            sasl_plain_password=USERS["alice"],
        )
        await producer.start()
        try:
            sent = await producer.send_and_wait(f"aiokafka-{mechanism}", b"value")
            return int(sent.offset)
        finally:
            await producer.stop()

    assert asyncio.run(produce()) == 0


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_our_blocking_client_logs_in(broker: Broker, mechanism: str) -> None:
    properties = client_properties(mechanism, "alice", USERS["alice"])
    with cluster_of(broker.bootstrap, properties) as cluster:
        assert len(run(cluster.refresh()).nodes) == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_our_asyncio_client_logs_in(broker: Broker, mechanism: str) -> None:
    security = client_security(client_properties(mechanism, "alice", USERS["alice"]))

    async def ask() -> MetadataResponse:
        [address] = parse_bootstrap(broker.bootstrap)
        connection = await connect(address, ConnectionSettings(security=security))
        try:
            return await connection.send(MetadataRequest(topics=[]), MetadataResponse)
        finally:
            await connection.close()

    assert len(asyncio.run(ask()).brokers) == 1


@pytest.mark.parametrize(
    ("mechanism", "user", "told"),
    [
        ("PLAIN", "alice", "Authentication failed: Invalid username or password"),
        ("PLAIN", "nobody", "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-256", "alice", "due to invalid credentials with SASL mechanism SCRAM-SHA-256"),
        ("SCRAM-SHA-512", "nobody", "due to invalid credentials with SASL mechanism SCRAM-SHA-512"),
    ],
)
def test_our_client_raises_what_the_broker_says_and_does_not_try_again(
    broker: Broker, mechanism: str, user: str, told: str
) -> None:
    with (
        cluster_of(broker.bootstrap, client_properties(mechanism, user, "wrong")) as cluster,
        pytest.raises(AuthenticationError, match=told),
    ):
        run(cluster.retrying(cluster.refresh))


def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are() -> None:
    settings = {**SASL_SETTINGS, "sasl.enabled.mechanisms": "PLAIN"}
    with (
        Broker(overrides=settings) as broker,
        cluster_of(broker.bootstrap, client_properties("SCRAM-SHA-256", "alice", "x")) as cluster,
        pytest.raises(
            AuthenticationError, match="does not offer the SASL mechanism SCRAM-SHA-256; it offers PLAIN"
        ),
    ):
        run(cluster.refresh())


def test_a_listener_without_sasl_is_named_in_the_error() -> None:
    with (
        Broker() as broker,
        cluster_of(broker.bootstrap, client_properties("PLAIN", "alice", "x")) as cluster,
        pytest.raises(AuthenticationError, match="does not use SASL"),
    ):
        run(cluster.refresh())


def test_our_clients_renew_their_sessions_in_place(broker: Broker) -> None:
    properties = client_properties("SCRAM-SHA-256", "alice", USERS["alice"])
    with cluster_of(broker.bootstrap, properties) as cluster:
        connection = run(cluster.any_connection())
        first = connection._renew_at
        assert first is not None

        def is_renewed() -> bool:
            run(cluster.refresh())
            return connection._renew_at != first

        wait_until(is_renewed)
        assert connection.is_open and run(cluster.any_connection()) is connection

    async def ask_many() -> None:
        [address] = parse_bootstrap(broker.bootstrap)
        settings = ConnectionSettings(security=client_security(properties))
        connection = await connect(address, settings)
        first = connection._renew_at
        while connection._renew_at == first:  # several requests are under way when the session is renewed
            requests = (connection.send(MetadataRequest(topics=[]), MetadataResponse) for _ in range(5))
            await asyncio.gather(*requests)
        assert connection.is_open
        await connection.close()

    asyncio.run(asyncio.wait_for(ask_many(), TIMEOUT))


def test_a_quota_of_a_user_counts_for_that_user_alone(broker: Broker) -> None:
    def longest_wait(user: str) -> int:
        waits: list[int] = []
        settings = librdkafka(broker, "PLAIN", USERS[user], **{"sasl.username": user})
        producer = Producer({**settings, "throttle_cb": lambda event: waits.append(event.throttle_time)})
        for _ in range(5):
            producer.produce("quotas", bytes(50_000))
            assert producer.flush(TIMEOUT) == 0
        return max(waits, default=0)

    with as_admin(broker) as cluster:
        run(Admin(cluster).alter_quotas({"user": "bob"}, {"producer_byte_rate": 20_000}))
    wait_until(lambda: longest_wait("bob") > 0)
    assert longest_wait("alice") == 0
    with as_admin(broker) as cluster:
        run(Admin(cluster).alter_quotas({"user": "bob"}, {"producer_byte_rate": None}))


def test_changed_credentials_count_at_the_next_login(broker: Broker) -> None:
    add_scram_user(broker, "carol", "one")
    with cluster_of(broker.bootstrap, client_properties("SCRAM-SHA-256", "carol", "one")) as open_before:
        run(open_before.refresh())
        add_scram_user(broker, "carol", "two")
        run(open_before.refresh())  # an open connection stays
        with cluster_of(broker.bootstrap, client_properties("SCRAM-SHA-256", "carol", "two")) as cluster:
            run(cluster.refresh())
        with (
            cluster_of(broker.bootstrap, client_properties("SCRAM-SHA-256", "carol", "one")) as cluster,
            pytest.raises(AuthenticationError),
        ):
            run(cluster.refresh())


@pytest.mark.java
def test_java_logs_in_and_names_what_is_wrong(broker: Broker, java: None, tmp_path: Path) -> None:
    alice = user(broker.bootstrap, "alice")
    token = alice.ask(Create())
    alice.close()
    logins = {
        "plain": client_properties("PLAIN", "alice", USERS["alice"]),
        "scram": client_properties("SCRAM-SHA-512", "alice", USERS["alice"]),
        "token": token_properties(token),
        "wrong": client_properties("SCRAM-SHA-256", "alice", "wrong"),
        "unknown": client_properties("PLAIN", "nobody", "x"),
        "not-offered": client_properties("OAUTHBEARER", "a", "b") | {"sasl.jaas.config": BEARER},
    }
    for name, properties in logins.items():
        lines = {"bootstrap.servers": broker.bootstrap, "topic": f"java-{name}", **properties}
        (tmp_path / name).write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    done = apache.java_program(JAVA, *(str(tmp_path / name) for name in logins), timeout=120)
    outcomes = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert {name: outcomes[name].split(":")[0] for name in logins} == {
        "plain": "ok 1400080 1",
        "scram": "ok 1400080 1",
        "token": "ok 1400080 1",
        "wrong": "SaslAuthenticationException",
        "unknown": "SaslAuthenticationException",
        "not-offered": "UnsupportedSaslMechanismException",
    }
    assert outcomes["unknown"].endswith("Authentication failed: Invalid username or password")
    assert outcomes["wrong"].endswith("due to invalid credentials with SASL mechanism SCRAM-SHA-256")
