"""Rules for dynamic broker settings: which settings, on which level, with which values.

In: a node's settings and all dynamic settings after the change, cluster-wide and for this broker. Raises
KafkaError(INVALID_REQUEST) with Kafka's messages.
Does not know: requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.settings.broker import BrokerSettings
from barnabas.settings.definitions import BROKER_ROWS
from barnabas.settings.errors import SettingsError, invalid_value
from barnabas.settings.names import LISTENER_PREFIX, listener_base_name
from barnabas.settings.tables.row import PER_BROKER, READ_ONLY

# Key and trust stores belong to a listener: without its prefix it is not defined which listener reloads them.
LISTENER_ONLY = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
# Thread pools that may at most double or halve in one change.
THREADS = frozenset(
    {
        "background.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.reader.threads",
    }
)
CLUSTER_LEVEL_LISTENER_SETTINGS = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)


def validate_broker_overrides(
    settings: BrokerSettings, default: Mapping[str, str], own: Mapping[str, str], *, per_broker: bool
) -> None:
    """Raise KafkaError unless these can be set dynamically. `per_broker` names the level that changes."""
    changed = own if per_broker else default
    refuse("Cannot update these configs dynamically", filter(is_read_only, changed))
    refuse(
        "These security configs can be dynamically updated only per-listener using the listener prefix",
        (name for name in changed if name in LISTENER_ONLY),
    )
    if not per_broker:
        refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            filter(is_per_broker, changed),
        )
    try:
        check_steps(settings, BrokerSettings(settings.static, default, own))
    except SettingsError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, error.reason) from error


def check_steps(before: BrokerSettings, after: BrokerSettings) -> None:
    """Refuse changes that a running node cannot make although it could start with them: too large steps, and
    conflicting settings."""
    for name in after.values:
        if (listener_base_name(name) if name.startswith(LISTENER_PREFIX) else name) in THREADS:
            check_threads(name, before.values.get(name, after[name]), after[name])
    cleaners = before["log.cleaner.threads"]
    if after["log.cleaner.threads"] > cleaners * 2:
        raise SettingsError(
            f"Log cleaner threads cannot be increased to more than double the current value {cleaners}"
        )
    if after["log.cleaner.threads"] < cleaners // 2:
        raise SettingsError(
            f"Log cleaner threads cannot be reduced to less than half the current value {cleaners}"
        )
    for unit in ("ms", "bytes"):
        check_local_retention(after, unit)
    kept = {found.name: found.security_protocol for found in before.listeners}
    for found in after.listeners:
        if kept.get(found.name, found.security_protocol) != found.security_protocol:
            raise SettingsError(f"Security protocol cannot be updated for existing listener {found.name}")


def check_threads(name: str, old: int, new: int) -> None:
    reason = f"Dynamic thread count update validation failed for {name}={new}"
    if new < old // 2:
        raise SettingsError(f"{reason}, value should be at least half the current value {old}")
    if new > old * 2:
        raise SettingsError(f"{reason}, value should not be greater than double the current value {old}")


def check_local_retention(settings: BrokerSettings, unit: str) -> None:
    total = getattr(settings.topic_defaults, f"retention_{unit}")
    name = f"log.local.retention.{unit}"
    local = settings[name]
    if total == -1 or local == -2:
        return
    if local == -1:
        raise invalid_value(
            name, local, f"Value must not be -1 as log.retention.{unit} value is set as {total}."
        )
    if local > total:
        raise invalid_value(
            name, local, f"Value must not be more than log.retention.{unit} property value: {total}"
        )


def refuse(reason: str, names: Iterable[str]) -> None:
    listed = ", ".join(names)
    if listed:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{reason}: [{listed}]")


def is_read_only(name: str) -> bool:
    row = BROKER_ROWS.get(name)
    return row is not None and row[5] == READ_ONLY


def is_per_broker(name: str) -> bool:
    if name.startswith(LISTENER_PREFIX):
        return listener_base_name(name) not in CLUSTER_LEVEL_LISTENER_SETTINGS
    row = BROKER_ROWS.get(name)
    return row is not None and row[5] == PER_BROKER
