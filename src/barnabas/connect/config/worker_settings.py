"""Settings of workers: names, types, defaults and checks of Kafka's worker configurations.

In: the properties of a worker. Out: every error at once, in Kafka's words, and settings that are given and
have no effect here. Settings of sockets, TLS and logins are checked where they are used, those of producers,
consumers and connectors by the clients that get them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.connect.config.definition import ConfigDef
from barnabas.connect.config.errors import ConfigError, invalid
from barnabas.connect.config.types import REQUIRED, ConfigType
from barnabas.connect.config.validators import Validator, at_least, between, checked, one_of_any_case

ALGORITHMS = ("HmacSHA1", "HmacSHA256", "HmacSHA384", "HmacSHA512")  # of keys and signatures
INT_MAX = 2**31 - 1
ONCE = "exactly.once.source.support"
Row = tuple[str, str, Any, Validator | None]


def protocol() -> Validator:
    known = ("eager", "compatible", "sessioned")
    reason = "Invalid Connect protocol compatibility"
    return checked(f"[{', '.join(known)}]", lambda value: str(value).lower() in known, reason)


def positive_or_default(what: str, rest: str = "") -> Validator:
    """A number from 1 on, or -1: the broker's default."""
    return checked(
        f"Positive number{rest}, or -1 to use the broker's default",
        lambda value: value is None or value == -1 or value > 0,
        f"{what} must be positive{rest}, or -1 to use the broker's default",
    )


def algorithm(what: str) -> Validator:
    def check(name: str, value: Any) -> None:
        for each in value if isinstance(value, list) else [value]:
            if each not in ALGORITHMS:
                raise invalid(name, each, f"{what}: one of {', '.join(ALGORITHMS)}")

    return Validator(f"[{', '.join(ALGORITHMS)}]", check)


COUNT = positive_or_default("Number of partitions")
SUPPORT = one_of_any_case("DISABLED", "ENABLED", "PREPARING")
COPIES = positive_or_default(
    "Replication factor", " and not larger than the number of brokers in the Kafka cluster"
)

COMMON: tuple[Row, ...] = (
    ("bootstrap.servers", "LIST", REQUIRED, None),
    ("key.converter", "CLASS", REQUIRED, None),
    ("value.converter", "CLASS", REQUIRED, None),
    ("header.converter", "CLASS", "org.apache.kafka.connect.storage.SimpleHeaderConverter", None),
    ("task.shutdown.graceful.timeout.ms", "LONG", "5000", at_least(0)),
    ("offset.flush.interval.ms", "LONG", "60000", at_least(0)),
    ("offset.flush.timeout.ms", "LONG", "5000", at_least(1)),
    ("plugin.path", "LIST", None, None),
    ("config.providers", "LIST", "", None),
    ("connector.client.config.override.policy", "STRING", "All", None),
    ("topic.creation.enable", "BOOLEAN", "true", None),
    ("topic.tracking.enable", "BOOLEAN", "true", None),
    ("topic.tracking.allow.reset", "BOOLEAN", "true", None),
    ("rest.advertised.port", "INT", None, None),
    ("client.id", "STRING", "", None),
    ("request.timeout.ms", "INT", "40000", at_least(0)),
)
DISTRIBUTED: tuple[Row, ...] = (
    ("group.id", "STRING", REQUIRED, None),
    ("offset.storage.topic", "STRING", REQUIRED, None),
    ("config.storage.topic", "STRING", REQUIRED, None),
    ("status.storage.topic", "STRING", REQUIRED, None),
    ("session.timeout.ms", "INT", "10000", at_least(1)),
    ("rebalance.timeout.ms", "INT", "60000", at_least(1)),
    ("heartbeat.interval.ms", "INT", "3000", at_least(1)),
    (ONCE, "STRING", "disabled", SUPPORT),
    ("worker.sync.timeout.ms", "INT", "3000", at_least(1)),
    ("offset.storage.partitions", "INT", "25", COUNT),
    ("offset.storage.replication.factor", "SHORT", "3", COPIES),
    ("config.storage.replication.factor", "SHORT", "3", COPIES),
    ("status.storage.partitions", "INT", "5", COUNT),
    ("status.storage.replication.factor", "SHORT", "3", COPIES),
    ("connect.protocol", "STRING", "sessioned", protocol()),
    ("scheduled.rebalance.max.delay.ms", "INT", "300000", between(0, INT_MAX)),
    ("inter.worker.key.ttl.ms", "INT", "3600000", between(0, INT_MAX)),
    ("inter.worker.key.generation.algorithm", "STRING", "HmacSHA256", algorithm("a key algorithm")),
    ("inter.worker.key.size", "INT", None, None),
    ("inter.worker.signature.algorithm", "STRING", "HmacSHA256", algorithm("a signature algorithm")),
    ("inter.worker.verification.algorithms", "LIST", "HmacSHA256", algorithm("signature algorithms")),
)
STANDALONE: tuple[Row, ...] = (("offset.storage.file.filename", "STRING", REQUIRED, None),)

_METRICS = "metrics are served at /metrics, without windows and levels"
_SOCKETS = "clients of workers have times and buffers of their own"
_PLUGINS = "the plugin path is always scanned"
_VERSIONS = "one version of a plugin is there"
NO_EFFECT: Mapping[str, tuple[str | None, str]] = {
    "plugin.discovery": ("hybrid_warn", _PLUGINS),
    "metrics.sample.window.ms": ("30000", _METRICS),
    "metrics.num.samples": ("2", _METRICS),
    "metrics.recording.level": ("INFO", _METRICS),
    "metric.reporters": ("org.apache.kafka.common.metrics.JmxReporter", _METRICS),
    "key.converter.plugin.version": (None, _VERSIONS),
    "value.converter.plugin.version": (None, _VERSIONS),
    "header.converter.plugin.version": (None, _VERSIONS),
    "client.dns.lookup": ("use_all_dns_ips", _SOCKETS),
    "metadata.max.age.ms": ("300000", _SOCKETS),
    "send.buffer.bytes": ("131072", _SOCKETS),
    "receive.buffer.bytes": ("32768", _SOCKETS),
    "reconnect.backoff.ms": ("50", _SOCKETS),
    "reconnect.backoff.max.ms": ("1000", _SOCKETS),
    "socket.connection.setup.timeout.ms": ("10000", _SOCKETS),
    "socket.connection.setup.timeout.max.ms": ("30000", _SOCKETS),
    "retry.backoff.ms": ("100", _SOCKETS),
    "retry.backoff.max.ms": ("1000", _SOCKETS),
    "connections.max.idle.ms": ("540000", _SOCKETS),
    "metadata.recovery.strategy": ("rebootstrap", _SOCKETS),
    "metadata.recovery.rebootstrap.trigger.ms": ("300000", _SOCKETS),
    "worker.unsync.backoff.ms": (
        "300000",
        "a worker that could not read the config topic joins at once",
    ),
}
ONLY_DISTRIBUTED = "a single worker has no group"
ALSO_ALONE = {
    "group.id",
    "offset.storage.topic",
    ONCE,
}  # of DISTRIBUTED, with an effect in a single worker too
SIGNATURE, VERIFICATION = "inter.worker.signature.algorithm", "inter.worker.verification.algorithms"
KEY_SIZE, KEY_BITS = "inter.worker.key.size", (40, 4096)


def worker_settings(*, is_distributed: bool) -> ConfigDef:
    once = [row for row in DISTRIBUTED if row[0] == ONCE]
    found = ConfigDef()
    for name, kind, default, validator in (
        *COMMON,
        *(DISTRIBUTED if is_distributed else (*once, *STANDALONE)),
    ):
        found.define(name, ConfigType(kind), default, validator=validator)
    return found.without_effect(NO_EFFECT)


def checked_worker(given: Mapping[str, str], *, is_distributed: bool) -> dict[str, str]:
    """The properties, without blanks around values and without empty ones; ConfigError with all errors."""
    definition = worker_settings(is_distributed=is_distributed)
    worker = {name: text.strip() if name in definition else text for name, text in given.items()}
    worker = {name: text for name, text in worker.items() if text or name not in definition}
    values = {each.name: each for each in definition.validate(worker)}
    errors = {name: each.errors[:1] for name, each in values.items() if each.errors}
    if is_distributed and not errors.keys() & {SIGNATURE, VERIFICATION, KEY_SIZE}:
        if values[SIGNATURE].value not in values[VERIFICATION].value:
            errors[SIGNATURE] = [f"Signature algorithm must be present in {VERIFICATION} list"]
        size = values[KEY_SIZE].value
        if size is not None and not KEY_BITS[0] <= size <= KEY_BITS[1]:
            reason = f"Value must be between {KEY_BITS[0]} and {KEY_BITS[1]} bits"
            errors[KEY_SIZE] = [str(invalid(KEY_SIZE, size, reason))]
    if errors:
        raise ConfigError.of(errors)
    return worker


def without_effect(worker: Mapping[str, str], *, is_distributed: bool) -> dict[str, str]:
    """Settings that are given and change nothing, with the reasons."""
    found = worker_settings(is_distributed=is_distributed).ignored(worker)
    if not is_distributed:
        others = {name for name, *_ in DISTRIBUTED} - ALSO_ALONE
        found |= {name: ONLY_DISTRIBUTED for name in worker if name in others}
    return found
