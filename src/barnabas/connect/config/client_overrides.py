"""Types, importance and defaults of the settings of Kafka's producers, consumers and admin clients.

In: a name. Out: its definition, for client overrides of connectors. A default `-` is none, `!` a
value that must be given; names that are not here are accepted as texts, as Kafka's clients accept them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from barnabas.connect.config.definition import ConfigKey
from barnabas.connect.config.errors import ConfigError
from barnabas.connect.config.types import REQUIRED, ConfigType, Importance
from barnabas.connect.config.validators import one_of, one_of_any_case

# name, type, importance, default
COMMON = """
bootstrap.servers LIST HIGH !
client.dns.lookup STRING MEDIUM use_all_dns_ips
config.providers LIST LOW ""
connections.max.idle.ms LONG MEDIUM 540000
enable.metrics.push BOOLEAN LOW true
interceptor.classes LIST LOW ""
metadata.max.age.ms LONG LOW 300000
metadata.recovery.rebootstrap.trigger.ms LONG LOW 300000
metadata.recovery.strategy STRING LOW rebootstrap
metric.reporters LIST LOW org.apache.kafka.common.metrics.JmxReporter
metrics.num.samples INT LOW 2
metrics.recording.level STRING LOW INFO
metrics.sample.window.ms LONG LOW 30000
reconnect.backoff.max.ms LONG LOW 1000
reconnect.backoff.ms LONG LOW 50
request.timeout.ms INT MEDIUM 30000
retry.backoff.max.ms LONG LOW 1000
retry.backoff.ms LONG LOW 100
sasl.client.callback.handler.class CLASS MEDIUM -
sasl.jaas.config PASSWORD MEDIUM -
sasl.kerberos.kinit.cmd STRING LOW /usr/bin/kinit
sasl.kerberos.min.time.before.relogin LONG LOW 60000
sasl.kerberos.service.name STRING MEDIUM -
sasl.kerberos.ticket.renew.jitter DOUBLE LOW 0.05
sasl.kerberos.ticket.renew.window.factor DOUBLE LOW 0.8
sasl.login.callback.handler.class CLASS MEDIUM -
sasl.login.class CLASS MEDIUM -
sasl.login.connect.timeout.ms INT LOW -
sasl.login.read.timeout.ms INT LOW -
sasl.login.refresh.buffer.seconds SHORT LOW 300
sasl.login.refresh.min.period.seconds SHORT LOW 60
sasl.login.refresh.window.factor DOUBLE LOW 0.8
sasl.login.refresh.window.jitter DOUBLE LOW 0.05
sasl.login.retry.backoff.max.ms LONG LOW 10000
sasl.login.retry.backoff.ms LONG LOW 100
sasl.mechanism STRING MEDIUM GSSAPI
sasl.oauthbearer.assertion.algorithm STRING MEDIUM RS256
sasl.oauthbearer.assertion.claim.aud STRING MEDIUM -
sasl.oauthbearer.assertion.claim.exp.seconds INT LOW 300
sasl.oauthbearer.assertion.claim.iss STRING MEDIUM -
sasl.oauthbearer.assertion.claim.jti.include BOOLEAN MEDIUM false
sasl.oauthbearer.assertion.claim.nbf.seconds INT LOW 60
sasl.oauthbearer.assertion.claim.sub STRING MEDIUM -
sasl.oauthbearer.assertion.file STRING MEDIUM -
sasl.oauthbearer.assertion.private.key.file STRING MEDIUM -
sasl.oauthbearer.assertion.private.key.passphrase PASSWORD MEDIUM -
sasl.oauthbearer.assertion.template.file STRING MEDIUM -
sasl.oauthbearer.client.credentials.client.id STRING MEDIUM -
sasl.oauthbearer.client.credentials.client.secret PASSWORD MEDIUM -
sasl.oauthbearer.clock.skew.seconds INT LOW 30
sasl.oauthbearer.expected.audience LIST HIGH ""
sasl.oauthbearer.expected.issuer STRING HIGH -
sasl.oauthbearer.header.urlencode BOOLEAN LOW false
sasl.oauthbearer.jwks.endpoint.refresh.ms LONG LOW 3600000
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms LONG LOW 10000
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms LONG LOW 100
sasl.oauthbearer.jwks.endpoint.url STRING MEDIUM -
sasl.oauthbearer.jwt.retriever.class CLASS MEDIUM -
sasl.oauthbearer.jwt.validator.class CLASS MEDIUM -
sasl.oauthbearer.scope STRING MEDIUM -
sasl.oauthbearer.scope.claim.name STRING LOW scope
sasl.oauthbearer.sub.claim.name STRING LOW sub
sasl.oauthbearer.token.endpoint.url STRING MEDIUM -
security.protocol STRING MEDIUM PLAINTEXT
security.providers STRING LOW -
send.buffer.bytes INT MEDIUM 131072
socket.connection.setup.timeout.max.ms LONG MEDIUM 30000
socket.connection.setup.timeout.ms LONG MEDIUM 10000
ssl.cipher.suites LIST LOW ""
ssl.enabled.protocols LIST MEDIUM TLSv1.2,TLSv1.3
ssl.endpoint.identification.algorithm STRING LOW https
ssl.engine.factory.class CLASS LOW -
ssl.key.password PASSWORD HIGH -
ssl.keymanager.algorithm STRING LOW SunX509
ssl.keystore.certificate.chain PASSWORD HIGH -
ssl.keystore.key PASSWORD HIGH -
ssl.keystore.location STRING HIGH -
ssl.keystore.password PASSWORD HIGH -
ssl.keystore.type STRING MEDIUM JKS
ssl.protocol STRING MEDIUM TLSv1.3
ssl.provider STRING MEDIUM -
ssl.secure.random.implementation STRING LOW -
ssl.trustmanager.algorithm STRING LOW PKIX
ssl.truststore.certificates PASSWORD HIGH -
ssl.truststore.location STRING HIGH -
ssl.truststore.password PASSWORD HIGH -
ssl.truststore.type STRING MEDIUM JKS
"""
PRODUCER = """
acks STRING LOW all
batch.size INT MEDIUM 16384
buffer.memory LONG HIGH 33554432
client.id STRING MEDIUM ""
compression.gzip.level INT MEDIUM -1
compression.lz4.level INT MEDIUM 9
compression.type STRING HIGH none
compression.zstd.level INT MEDIUM 3
delivery.timeout.ms INT MEDIUM 120000
enable.idempotence BOOLEAN LOW true
key.serializer CLASS HIGH !
linger.ms LONG MEDIUM 5
max.block.ms LONG MEDIUM 60000
max.in.flight.requests.per.connection INT LOW 5
max.request.size INT MEDIUM 1048576
metadata.max.idle.ms LONG LOW 300000
partitioner.adaptive.partitioning.enable BOOLEAN LOW true
partitioner.availability.timeout.ms LONG LOW 0
partitioner.class CLASS MEDIUM -
partitioner.ignore.keys BOOLEAN MEDIUM false
receive.buffer.bytes INT MEDIUM 32768
retries INT HIGH 2147483647
transaction.timeout.ms INT LOW 60000
transaction.two.phase.commit.enable BOOLEAN LOW false
transactional.id STRING LOW -
value.serializer CLASS HIGH !
"""
CONSUMER = """
allow.auto.create.topics BOOLEAN MEDIUM true
auto.commit.interval.ms INT LOW 5000
auto.offset.reset STRING MEDIUM latest
check.crcs BOOLEAN LOW true
client.id STRING LOW ""
client.rack STRING LOW ""
default.api.timeout.ms INT MEDIUM 60000
enable.auto.commit BOOLEAN MEDIUM true
exclude.internal.topics BOOLEAN MEDIUM true
fetch.max.bytes INT MEDIUM 52428800
fetch.max.wait.ms INT LOW 500
fetch.min.bytes INT HIGH 1
group.id STRING HIGH -
group.instance.id STRING MEDIUM -
group.protocol STRING HIGH classic
group.remote.assignor STRING MEDIUM -
heartbeat.interval.ms INT HIGH 3000
internal.throw.on.fetch.stable.offset.unsupported BOOLEAN LOW false
isolation.level STRING MEDIUM read_uncommitted
key.deserializer CLASS HIGH !
max.partition.fetch.bytes INT HIGH 1048576
max.poll.interval.ms INT MEDIUM 300000
max.poll.records INT MEDIUM 500
partition.assignment.strategy LIST MEDIUM -
receive.buffer.bytes INT MEDIUM 65536
session.timeout.ms INT HIGH 45000
share.acknowledgement.mode STRING MEDIUM implicit
share.acquire.mode STRING MEDIUM BATCH_OPTIMIZED
value.deserializer CLASS HIGH !
"""

# Settings that take one of a few words.
WORDS = {
    "acks": ("all", "-1", "0", "1"),
    "client.dns.lookup": ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "compression.type": ("none", "gzip", "snappy", "lz4", "zstd"),
    "isolation.level": ("read_committed", "read_uncommitted"),
    "metrics.recording.level": ("INFO", "DEBUG", "TRACE"),
}
ANY_CASE = {
    "group.protocol": ("CONSUMER", "CLASSIC"),
    "security.protocol": ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
}
CHECKS = {
    **{name: one_of(*words) for name, words in WORDS.items()},
    **{name: one_of_any_case(*words) for name, words in ANY_CASE.items()},
}


@cache
def client_settings(kind: str) -> dict[str, ConfigKey]:
    """The settings of a `producer`, a `consumer` or an `admin` client, by name."""
    texts = {"producer": COMMON + PRODUCER, "consumer": COMMON + CONSUMER}.get(kind, COMMON)
    return {key.name: key for key in map(key_of, texts.strip().splitlines()) if key is not None}


def key_of(line: str) -> ConfigKey | None:
    if not line:
        return None
    name, kind, importance, default = line.split(" ", 3)
    key = ConfigKey(name, ConfigType(kind), None, Importance(importance), display_name=name)
    if default == "!":
        return replace(key, default=REQUIRED)
    given = None if default == "-" else "" if default == '""' else default
    try:
        parsed = key.parse(given)
    except ConfigError:
        parsed = given
    return replace(key, default=parsed)


def override_value(kind: str, name: str, text: str) -> Any:
    """The typed value of a setting; the text where nothing is known about it. ConfigError: a wrong type, or
    a word that it does not take."""
    key = client_settings(kind).get(name)
    if key is None:
        return text
    found = key.parse(text)
    if name in CHECKS:
        CHECKS[name](name, found)
    return found
