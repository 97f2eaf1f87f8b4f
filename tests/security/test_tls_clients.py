"""Clients of every kind produce and consume through a TLS listener, or are told why they may not."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, Producer

from barnabas.client.admin.admin import Admin
from barnabas.client.blocking import BlockingCluster, run
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import Address
from barnabas.client.core.errors import ClientError
from barnabas.security.clients.client_security import ClientSecurity, client_security
from barnabas.testing import apache

from .tls_world import TlsBroker, certificates

JAVA = Path(__file__).with_name("JavaTls.java")
SIZES = [1, 100, 20_000, 900_000] * 3
TOPIC = "records"


@pytest.fixture(scope="module")
def broker() -> Iterator[TlsBroker]:
    with TlsBroker(ssl_client_auth="requested") as found:
        yield found


@pytest.fixture(scope="module")
def strict() -> Iterator[TlsBroker]:
    """Clients need a certificate."""
    with TlsBroker(ssl_client_auth="required") as found:
        yield found


def values() -> list[bytes]:
    return [bytes([number % 256]) * size for number, size in enumerate(SIZES)]


def librdkafka(broker: TlsBroker, **more: str) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": certificates().ca_file,
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def java_properties(broker: TlsBroker, **more: str) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": certificates().ca_file,
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def test_librdkafka_produces_and_consumes(broker: TlsBroker) -> None:
    broker.create_topic("rd", 2)
    producer = Producer({**librdkafka(broker), "message.max.bytes": 1_000_000})
    failed = []
    for value in values():
        producer.produce("rd", value, on_delivery=lambda error, _: failed.append(error) if error else None)
    assert producer.flush(30) == 0
    assert not failed
    consumer = Consumer({**librdkafka(broker), "group.id": "rd", "auto.offset.reset": "earliest"})
    consumer.subscribe(["rd"])
    found: list[bytes | None] = []
    try:
        while len(found) < len(SIZES):
            batch = consumer.consume(len(SIZES), 30)
            assert batch, "nothing arrived within 30 s"
            found += [message.value() for message in batch]
    finally:
        consumer.close()
    assert sorted(each or b"" for each in found) == sorted(values())


def test_kafka_python_produces_and_consumes(broker: TlsBroker) -> None:
    broker.create_topic("kp")
    settings = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SSL",
        "ssl_cafile": certificates().ca_file,
    }
    producer = kafka.KafkaProducer(**settings)
    for value in values():
        producer.send("kp", value).get(30)
    producer.close()
    consumer = kafka.KafkaConsumer(
        "kp", **settings, auto_offset_reset="earliest", consumer_timeout_ms=30_000, group_id=None
    )
    found = [next(consumer).value for _ in SIZES]
    consumer.close()
    assert found == values()


def test_aiokafka_produces_and_consumes(broker: TlsBroker) -> None:
    broker.create_topic("aio")

    async def talk() -> list[bytes | None]:
        context = client_security(java_properties(broker)).tls
        settings = {
            "bootstrap_servers": broker.bootstrap,
            "security_protocol": "SSL",
            "ssl_context": context,
        }
        async with aiokafka.AIOKafkaProducer(**settings) as producer:
            for value in values():
                await producer.send_and_wait("aio", value)
        async with aiokafka.AIOKafkaConsumer("aio", **settings, auto_offset_reset="earliest") as consumer:
            return [(await asyncio.wait_for(consumer.getone(), 30)).value for _ in SIZES]

    assert asyncio.run(talk()) == values()


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_kcat_produces_and_consumes(broker: TlsBroker) -> None:
    broker.create_topic("kcat")

    def kcat(*arguments: str, text: str = "") -> str:
        options = [part for name, value in librdkafka(broker).items() for part in ("-X", f"{name}={value}")]
        done = subprocess.run(
            ["kcat", "-q", *options, "-t", "kcat", *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    kcat("-P", text="one\ntwo\n")
    assert kcat("-C", "-e", "-o", "beginning") == "one\ntwo\n"


@pytest.mark.java
def test_java_produces_and_consumes_and_sees_why_it_may_not(
    java: None, broker: TlsBroker, strict: TlsBroker, tmp_path: Path
) -> None:
    made = certificates()
    alice = {"ssl_keystore_type": "PEM", "ssl_keystore_location": made.alice_file}
    mallory = made.store("mallory.pem", made.mallory)
    cases = {
        "one-sided": (broker, {}),
        "mutual": (strict, alice),
        "old-version": (broker, {"ssl_enabled_protocols": "TLSv1.2"}),
        "no-certificate": (strict, {}),
        "unknown-authority": (strict, {**alice, "ssl_keystore_location": mallory}),
        "broker-not-trusted": (broker, {"ssl_truststore_location": made.other_ca_file}),
    }
    files = []
    for name, (target, more) in cases.items():
        target.create_topic(name)
        path = tmp_path / name
        lines = {**java_properties(target, **more), "topic": name}
        path.write_text("".join(f"{each}={value}\n" for each, value in lines.items()))
        files.append(str(path))
    done = apache.java_program(JAVA, *files, timeout=100)

    outcomes = dict(line.partition(":")[0].split(" ", 1) for line in done.stdout.splitlines())
    assert outcomes == {
        "one-sided": "ok 1400080 1",
        "mutual": "ok 1400080 1",
        "old-version": "ok 1400080 1",
        "no-certificate": "SslAuthenticationException",
        "unknown-authority": "SslAuthenticationException",
        "broker-not-trusted": "SslAuthenticationException",
    }, done.stderr


# -- our own client -------------------------------------------------------------------------------


def topics_of(port: int, security: ClientSecurity) -> set[str]:
    with BlockingCluster([Address("127.0.0.1", port)], security=security) as cluster:
        return {each.name for each in run(Admin(cluster).list_topics())}


def topics_on_a_loop(port: int, security: ClientSecurity) -> set[str]:
    async def ask() -> set[str]:
        cluster = Cluster([Address("127.0.0.1", port)], security=security)
        try:
            return {each.name for each in await Admin(cluster).list_topics()}
        finally:
            await cluster.close()

    return asyncio.run(ask())


@pytest.mark.parametrize("ask", [topics_of, topics_on_a_loop])
def test_both_faces_of_our_client_speak_tls(broker: TlsBroker, ask: object) -> None:
    broker.create_topic("ours")
    assert "ours" in ask(broker.port, client_security(java_properties(broker)))  # type: ignore[operator]
    broker.delete_topic("ours")


@pytest.mark.parametrize("ask", [topics_of, topics_on_a_loop])
def test_our_client_says_how_to_mend_a_refused_certificate(broker: TlsBroker, ask: object) -> None:
    security = client_security(java_properties(broker, ssl_truststore_location=certificates().other_ca_file))
    with pytest.raises(ClientError, match=r"add the authority that signed it to the trust store"):
        ask(broker.port, security)  # type: ignore[operator]


@pytest.mark.parametrize("ask", [topics_of, topics_on_a_loop])
def test_our_client_says_that_it_needs_a_certificate(strict: TlsBroker, ask: object) -> None:
    """With TLS 1.3 the broker looks at it when the client's handshake is complete already."""
    with pytest.raises(ClientError, match=r"the broker wants a certificate of the client; set ssl.keystore"):
        ask(strict.port, client_security(java_properties(strict)))  # type: ignore[operator]


@pytest.mark.parametrize("ask", [topics_of, topics_on_a_loop])
def test_our_client_says_when_a_listener_speaks_no_tls(broker: TlsBroker, ask: object) -> None:
    with pytest.raises(ClientError, match=r"does not speak TLS|closed the connection during"):
        ask(broker.inner, client_security(java_properties(broker)))  # type: ignore[operator]
