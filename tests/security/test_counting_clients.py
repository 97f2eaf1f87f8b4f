"""Clients that count for the audit send their counts with the login that they have themselves."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest

from audit.counted import ledger_of
from barnabas.audit import PRODUCER
from barnabas.audit.clients import aiokafka, confluent, kafka_python
from barnabas.audit.clients.keyword_login import login_of_keywords
from barnabas.audit.clients.librdkafka_login import login_of
from barnabas.client.blocking import BlockingCluster, run
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.errors import ClientError
from barnabas.security.clients.client_security import client_security
from barnabas.security.errors import SecuritySettingsError

from .kdc import missing as no_kdc
from .locked_broker import EVERY_WAY, LOCKED_LOGINS, LOGINS, MUTUAL, TLS, Locked, Way
from .provider import CLIENT_ID, claims, signed
from .round_trips import AiokafkaTokens, KafkaPythonTokens, cannot
from .tls_world import certificates

VALUES = [b"one", b"two", b"three"]
SHORT_PYTHON = {MUTUAL, LOCKED_LOGINS[1], LOCKED_LOGINS[3], LOGINS[0]}
PYTHON_WAYS = [
    pytest.param(way, id=str(way), marks=[] if way in SHORT_PYTHON else [pytest.mark.long])
    for way in EVERY_WAY
]


def counted(locked: Locked, topic: str) -> int:
    """Records of a topic that producers counted."""
    ledger = ledger_of(locked.bootstrap(TLS), security=client_security(locked.java(TLS)))
    columns = [column for (name, _), column in ledger.columns.items() if name == topic]
    return sum(column[PRODUCER].total.counted for column in columns if PRODUCER in column)


def skip_if_impossible(locked: Locked, way: Way, client: str) -> None:
    if way.mechanism == "GSSAPI" and locked.kdc is None:
        pytest.skip(no_kdc() or "")
    reason = cannot(client, way)
    if reason is not None:
        pytest.skip(reason)


@pytest.mark.parametrize("way", EVERY_WAY, ids=str)
def test_the_login_of_a_librdkafka_client_is_one_of_ours(running: Locked, way: Way) -> None:
    """Kerberos too, which many builds of librdkafka lack."""
    if way.mechanism == "GSSAPI" and running.kdc is None:
        pytest.skip(no_kdc() or "")
    security = login_of(running.librdkafka(way))
    assert security is not None and (security.protocol, security.mechanism) == (way.protocol, way.mechanism)
    bootstrap = parse_bootstrap(running.bootstrap(way))
    with BlockingCluster(bootstrap, security=security) as cluster:
        assert run(cluster.refresh()).nodes


@pytest.mark.parametrize("way", EVERY_WAY, ids=str)
def test_confluent_kafka_counts_with_its_own_login(running: Locked, way: Way) -> None:
    skip_if_impossible(running, way, "librdkafka")
    topic = f"counted-confluent-{way}"
    producer = confluent.Producer(running.librdkafka(way) | {"log_level": 0})
    for value in VALUES:
        producer.produce(topic, value, partition=0)
    assert producer.flush(20) == 0
    assert producer.audit.close()
    assert counted(running, topic) == len(VALUES)


def test_a_token_callback_of_confluent_kafka_gives_the_counter_its_tokens(running: Locked) -> None:
    way = LOCKED_LOGINS[3]
    asked: list[str] = []

    def token(config: str) -> tuple[str, float]:
        asked.append(config)
        payload = claims(CLIENT_ID)
        return signed(payload), float(payload["exp"])

    config = {
        name: value
        for name, value in running.librdkafka(way).items()
        if not name.startswith("sasl.oauthbearer.")
    }
    config |= {"oauth_cb": token, "sasl.oauthbearer.config": "scope=audit", "log_level": 0}
    producer = confluent.Producer(config)
    producer.produce("counted-callback", b"one", partition=0)
    assert producer.flush(20) == 0
    before = len(asked)
    assert producer.audit.close()
    assert counted(running, "counted-callback") == 1
    assert before >= 1 and set(asked) == {"scope=audit"}


def test_a_wrong_password_is_refused_for_the_counter_too(running: Locked) -> None:
    security = login_of(running.librdkafka(LOGINS[1], password="wrong"))
    assert security is not None
    with (
        pytest.raises(ClientError, match="invalid credentials"),
        BlockingCluster(parse_bootstrap(running.bootstrap(LOGINS[1])), security=security) as cluster,
    ):
        run(cluster.refresh())


def python_settings(locked: Locked, way: Way, tokens: object) -> dict[str, Any]:
    made = locked.python(way)
    if way.mechanism == "OAUTHBEARER":
        made["sasl_oauth_token_provider"] = tokens
    return made


@pytest.mark.parametrize("way", PYTHON_WAYS)
def test_kafka_python_counts_with_its_own_login(running: Locked, way: Way) -> None:
    skip_if_impossible(running, way, "kafka-python")
    topic = f"counted-kafka-python-{way}"
    settings = python_settings(running, way, KafkaPythonTokens())
    if way.has_tls:
        settings["ssl_cafile"] = certificates().ca_file
    if way == MUTUAL:
        settings |= {"ssl_certfile": certificates().alice_file, "ssl_keyfile": certificates().alice_file}
    producer = kafka_python.KafkaProducer(**settings)
    for value in VALUES:
        producer.send(topic, value, partition=0).get(20)
    producer.close()
    assert counted(running, topic) == len(VALUES)


@pytest.mark.parametrize("way", PYTHON_WAYS)
def test_aiokafka_counts_with_its_own_login(running: Locked, way: Way) -> None:
    skip_if_impossible(running, way, "aiokafka")
    topic = f"counted-aiokafka-{way}"

    async def write() -> None:
        settings = python_settings(running, way, AiokafkaTokens())
        if way.has_tls:
            context = ssl.create_default_context(cafile=certificates().ca_file)
            if way == MUTUAL:
                context.load_cert_chain(certificates().alice_file)
            settings["ssl_context"] = context
        producer = aiokafka.AIOKafkaProducer(**settings)
        await producer.start()
        for value in VALUES:
            await producer.send_and_wait(topic, value, partition=0)
        await producer.stop()

    asyncio.run(write())
    assert counted(running, topic) == len(VALUES)


def test_settings_that_cannot_be_followed_are_named() -> None:
    base = {"bootstrap.servers": "here:9092", "security.protocol": "ssl"}
    with pytest.raises(SecuritySettingsError, match=r"ssl\.key\.location: /nowhere/key cannot be read"):
        login_of({**base, "ssl.key.location": "/nowhere/key"})
    with pytest.raises(SecuritySettingsError, match=r"ssl\.cipher\.suites: OpenSSL refuses them"):
        login_of({**base, "ssl.cipher.suites": "NONE-SUCH"})
    with pytest.raises(SecuritySettingsError, match="option password"):
        login_of({"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": "a"})
    assert login_of({"bootstrap.servers": "here:9092", "sasl.username": "a"}) is None


def test_checks_that_a_client_turned_off_are_off_for_its_counter() -> None:
    base = {"security.protocol": "SSL", "ssl.ca.location": certificates().ca_file}
    checked = login_of(base)
    unnamed = login_of({**base, "ssl.endpoint.identification.algorithm": "none"})
    trusting = login_of({**base, "enable.ssl.certificate.verification": False})
    keywords = login_of_keywords(
        {"security_protocol": "SSL", "ssl_cafile": certificates().ca_file, "ssl_check_hostname": False}
    )
    seen = [
        (each.tls.check_hostname, each.tls.verify_mode)
        for each in (checked, unnamed, trusting, keywords)
        if each is not None and each.tls is not None
    ]
    required, none = ssl.CERT_REQUIRED, ssl.CERT_NONE
    assert seen == [(True, required), (False, required), (False, none), (False, required)]
