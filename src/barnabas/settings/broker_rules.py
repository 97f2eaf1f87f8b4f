"""What may be changed on a running node: which settings, on which level, with which values.

In: a node's settings and all that would be set while running, cluster-wide and for this broker.
Out: nothing, or KafkaError(INVALID_REQUEST) in Kafka's words. Does not know: the request it came in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.settings.broker import BrokerSettings
from barnabas.settings.definitions import BROKER_ROWS
from barnabas.settings.errors import SettingsError
from barnabas.settings.names import LISTENER_PREFIX, listener_base_name
from barnabas.settings.row import PER_BROKER, READ_ONLY

# Key and trust stores belong to a listener: without its prefix nobody could say which one reloads them.
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
CLUSTER_LEVEL_LISTENER_SETTINGS = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)


def validate_broker_overrides(
    settings: BrokerSettings, default: Mapping[str, str], own: Mapping[str, str], *, per_broker: bool
) -> None:
    """Raise KafkaError unless these can be set while running; `per_broker` says which level changes."""
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
        BrokerSettings(settings.static, default, own)
    except SettingsError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, error.reason) from error


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
