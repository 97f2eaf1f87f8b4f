"""Rules for settings of groups: names, values, and the broker's limits for them.

In: all overrides of a group after a change, the broker settings. Raises KafkaError(INVALID_CONFIG) with
Kafka's messages.
Does not know: the group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.settings.broker import BrokerSettings
from barnabas.settings.definitions import BROKER_ROWS, group_setting
from barnabas.settings.errors import SettingsError
from barnabas.settings.validators import check_value
from barnabas.settings.values import parse_value


def validate_group_overrides(overrides: Mapping[str, str], broker: BrokerSettings) -> None:
    """Raise KafkaError(INVALID_CONFIG) unless the overrides can be a group's whole configuration."""
    try:
        values = {name: checked_value(name, text, broker) for name, text in overrides.items()}
        for kind in ("consumer", "share", "streams"):
            check_heartbeat(kind, values, broker)
    except SettingsError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, error.reason) from error


def checked_value(name: str, text: str, broker: BrokerSettings) -> Any:
    setting = group_setting(name)
    if setting is None:
        raise SettingsError(f"Unknown group config name: {name}", name=name)
    value: Any = parse_value(name, setting.type, text)
    check_value(setting, value)
    kind, _, rest = name.partition(".")
    low, high = f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest.removeprefix('num.')}"
    if low in BROKER_ROWS and value < broker[low]:
        raise SettingsError(f"{name} must be greater than or equal to {low}", name=name)
    if high in BROKER_ROWS and value > broker[high]:
        raise SettingsError(f"{name} must be less than or equal to {high}", name=name)
    return value


def check_heartbeat(kind: str, values: Mapping[str, Any], broker: BrokerSettings) -> None:
    heartbeat, session = f"{kind}.heartbeat.interval.ms", f"{kind}.session.timeout.ms"
    if values.get(heartbeat, broker[f"group.{heartbeat}"]) >= values.get(session, broker[f"group.{session}"]):
        raise SettingsError(f"{heartbeat} must be less than {session}", name=heartbeat)
