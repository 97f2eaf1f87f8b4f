"""Rules for settings of topics: names, values, and relations between them.

In: all overrides of a topic after a change, its current ones, and the broker settings. Raises
KafkaError(INVALID_CONFIG) with Kafka's messages.
Does not know: requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.settings.definitions import TOPIC_ROWS
from barnabas.settings.errors import SettingsError, invalid_value
from barnabas.settings.topic import topic_values

if TYPE_CHECKING:
    from barnabas.settings.broker import BrokerSettings

NOTHING: Mapping[str, str] = {}


def validate_topic_overrides(
    overrides: Mapping[str, str | None],
    broker: BrokerSettings | None = None,
    existing: Mapping[str, str] = NOTHING,
) -> None:
    """Raise KafkaError(INVALID_CONFIG) unless the overrides can be a topic's whole configuration."""
    missing = [name for name, value in overrides.items() if value is None]
    if missing:
        raise invalid(f"Null value not supported for topic configs: {','.join(missing)}")
    for name in overrides:
        if name not in TOPIC_ROWS:
            raise invalid(f"Unknown topic config name: {name}")
    try:
        values = topic_values({name: value for name, value in overrides.items() if value is not None}, broker)
        check_compaction_lag(values)
        check_remote_storage(values, broker, existing)
    except SettingsError as error:
        raise invalid(error.reason) from error


def invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)


def check_compaction_lag(values: Mapping[str, Any]) -> None:
    low, high = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if low > high:
        raise SettingsError(
            f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
        )


def check_remote_storage(
    values: Mapping[str, Any], broker: BrokerSettings | None, existing: Mapping[str, str]
) -> None:
    if not values["remote.storage.enable"]:
        was_enabled = existing.get("remote.storage.enable", "").lower() == "true"
        if was_enabled and not values["remote.log.delete.on.disable"]:
            raise SettingsError(
                "It is invalid to disable remote storage without deleting remote data. If you want to keep "
                "the remote data and turn to read only, please set `remote.storage.enable=true,"
                "remote.log.copy.disable=true`. If you want to disable remote storage and delete all "
                "remote data, please set `remote.storage.enable=false,remote.log.delete.on.disable=true`."
            )
        return
    if broker is not None and not broker["remote.log.storage.system.enable"]:
        raise SettingsError(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with "
            "remote log storage."
        )
    if "compact" in values["cleanup.policy"]:
        raise SettingsError("Remote log storage is unsupported for the compacted topics")
    for unit in ("bytes", "ms"):
        check_local_retention(values, unit)


def check_local_retention(values: Mapping[str, Any], unit: str) -> None:
    total, local = values[f"retention.{unit}"], values[f"local.retention.{unit}"]
    name = f"local.retention.{unit}"
    if values["remote.log.copy.disable"] and local not in (-2, total):
        raise SettingsError(
            f"When `remote.log.copy.disable` is set to true, the `{name}` and `retention.{unit}` must be "
            "set to the identical value because there will be no more logs copied to the remote storage."
        )
    if total < 0 or local == -2:
        return
    if local == -1:
        raise invalid_value(name, local, f"Value must not be -1 as retention.{unit} value is set as {total}.")
    if local > total:
        raise invalid_value(
            name, local, f"Value must not be more than retention.{unit} property value: {total}"
        )
