"""Clients of every kind: each writes some records to a topic in one of the ways, and reads them again."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import Callable
from typing import Any

import aiokafka
import aiokafka.abc
import kafka
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from kafka.net.sasl.oauth import AbstractTokenProvider

from barnabas.client.blocking import BlockingCluster, run
from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer as OurConsumer
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.topology import TopicPartition as OurPartition
from barnabas.client.producer import Producer as OurProducer
from barnabas.security.clients.client_security import client_security

from .locked_broker import MUTUAL, Locked, Way
from .provider import CLIENT_ID, claims, signed
from .tls_world import certificates

VALUES = [b"one", b"two", b"three" * 1000]
TIMEOUT_S = 20.0


def librdkafka(locked: Locked, way: Way, topic: str) -> None:
    settings = locked.librdkafka(way) | {"log_level": 0}
    errors: list[KafkaError] = []
    producer = Producer(settings | {"error_cb": errors.append})
    for value in VALUES:
        producer.produce(topic, value, partition=0)
    assert producer.flush(TIMEOUT_S) == 0, errors
    consumer = Consumer(settings | {"group.id": topic, "error_cb": errors.append})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Any] = []
    while len(found) < len(VALUES):
        batch = consumer.consume(len(VALUES), TIMEOUT_S)
        assert batch, errors
        found += [each.value() for each in batch]
    consumer.close()
    assert found == VALUES


class KafkaPythonTokens(AbstractTokenProvider):
    def token(self) -> str:
        return signed(claims(CLIENT_ID))


def kafka_python(locked: Locked, way: Way, topic: str) -> None:
    settings = locked.python(way)
    if way.has_tls:
        settings |= {"ssl_cafile": certificates().ca_file}
    if way == MUTUAL:
        settings |= {"ssl_certfile": certificates().alice_file, "ssl_keyfile": certificates().alice_file}
    if way.mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = KafkaPythonTokens()
    producer = kafka.KafkaProducer(**settings)
    try:
        for value in VALUES:
            producer.send(topic, value, partition=0).get(TIMEOUT_S)
    finally:
        producer.close()
    consumer = kafka.KafkaConsumer(**settings, consumer_timeout_ms=TIMEOUT_S * 1000)
    try:
        consumer.assign([kafka.TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        found: list[bytes] = []
        for record in consumer:
            found.append(record.value)
            if len(found) == len(VALUES):
                break
    finally:
        consumer.close()
    assert found == VALUES


class AiokafkaTokens(aiokafka.abc.AbstractTokenProvider):
    async def token(self) -> str:
        return signed(claims(CLIENT_ID))


def aiokafka_(locked: Locked, way: Way, topic: str) -> None:
    asyncio.run(aiokafka_round_trip(locked, way, topic))


async def aiokafka_round_trip(locked: Locked, way: Way, topic: str) -> None:
    settings = locked.python(way)
    if way.has_tls:
        context = ssl.create_default_context(cafile=certificates().ca_file)
        if way == MUTUAL:
            context.load_cert_chain(certificates().alice_file)
        settings["ssl_context"] = context
    if way.mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = AiokafkaTokens()
    producer = aiokafka.AIOKafkaProducer(**settings)
    await producer.start()
    try:
        for value in VALUES:
            await producer.send_and_wait(topic, value, partition=0)
    finally:
        await producer.stop()
    consumer = aiokafka.AIOKafkaConsumer(**settings)
    await consumer.start()
    try:
        partition = aiokafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        found = [(await asyncio.wait_for(consumer.getone(), TIMEOUT_S)).value for _ in VALUES]
    finally:
        await consumer.stop()
    assert found == VALUES


def kcat(locked: Locked, way: Way, topic: str) -> None:
    program = shutil.which("kcat")
    assert program is not None
    settings = locked.librdkafka(way)
    bootstrap = settings.pop("bootstrap.servers")
    options = [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]
    common = [program, "-b", bootstrap, "-t", topic, "-p", "0", *options]
    text = b"".join(value + b"\n" for value in VALUES)
    done = subprocess.run([*common, "-P"], input=text, capture_output=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    count = str(len(VALUES))
    done = subprocess.run(
        [*common, "-C", "-o", "beginning", "-c", count, "-e"], capture_output=True, timeout=TIMEOUT_S
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == text


def ours(locked: Locked, way: Way, topic: str) -> None:
    """Our producer and consumer on an event loop, and our blocking client."""
    properties = locked.java(way)
    addresses, security = parse_bootstrap(properties["bootstrap.servers"]), client_security(properties)

    async def round_trip() -> list[bytes | None]:
        async with Cluster(addresses, security=security) as cluster:
            async with OurProducer(cluster) as producer:
                for value in VALUES:
                    await producer.send(topic, value, partition=0)
            consumer = OurConsumer(cluster)
            consumer.assign({OurPartition(topic, 0): 0})
            found: list[bytes | None] = []
            async with asyncio.timeout(TIMEOUT_S):
                while len(found) < len(VALUES):
                    found += [each.value for each in await consumer.poll(1000)]
            await consumer.close()
            return found

    assert asyncio.run(round_trip()) == VALUES
    with BlockingCluster(addresses, security=security) as blocking:
        assert topic in run(blocking.refresh([topic])).topics


RoundTrip = Callable[[Locked, Way, str], None]
CLIENTS: dict[str, RoundTrip] = {
    "librdkafka": librdkafka,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka_,
    "kcat": kcat,
    "ours": ours,
}


def cannot(client: str, way: Way) -> str | None:
    """Why a client cannot go this way; None if it can."""
    if client == "librdkafka" and way.mechanism == "GSSAPI":
        return "the wheels of confluent-kafka are built without Kerberos"
    if client == "kcat" and way.mechanism.startswith("SCRAM"):
        return "librdkafka before 2.8 repeats its own nonce in SCRAM, and Kafka refuses that"
    if client == "kcat" and way.mechanism == "OAUTHBEARER":
        return "Debian's librdkafka is built without requests to identity providers"
    if client == "kcat" and shutil.which("kcat") is None:
        return "kcat is not installed"
    return None
