"""Settings of client metrics subscriptions (KIP-714): validation and parsing.

In: a subscription's texts. Out: typed values and the patterns that select clients, or KafkaError with Kafka's
messages.
Does not know: clients, where metrics go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.settings.definitions import CLIENT_METRICS_ROWS, default_value
from barnabas.settings.errors import SettingsError
from barnabas.settings.tables.row import Setting
from barnabas.settings.validators import check_value
from barnabas.settings.values import Value, parse_value

INTERVAL_MS_MIN, INTERVAL_MS_MAX = 100, 3_600_000
MATCHED = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


@dataclass(frozen=True, slots=True)
class Subscription:
    name: str
    metrics: tuple[str, ...]
    interval_ms: int
    match: tuple[tuple[str, re.Pattern[str]], ...]

    def matches(self, attributes: Mapping[str, str]) -> bool:
        return all(pattern.fullmatch(attributes.get(name, "")) for name, pattern in self.match)


def subscription(name: str, texts: Mapping[str, str]) -> Subscription:
    values = client_metrics_values(texts)
    metrics, interval_ms, match = values["metrics"], values["interval.ms"], values["match"]
    assert isinstance(metrics, tuple) and isinstance(interval_ms, int) and isinstance(match, tuple)
    return Subscription(name, metrics, interval_ms, parse_match(match))


def client_metrics_values(texts: Mapping[str, str]) -> dict[str, Value]:
    """All settings of a subscription, typed; SettingsError for a wrong one."""
    values = {name: default_value(row) for name, row in CLIENT_METRICS_ROWS.items()}
    for name, text in texts.items():
        setting = Setting._make(CLIENT_METRICS_ROWS[name])
        values[name] = parse_value(name, setting.type, text)
        check_value(setting, values[name])
    return values


def validate_client_metrics(name: str, texts: Mapping[str, str]) -> None:
    """Raise KafkaError unless the values can be a subscription's."""
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for key in texts:
        if key not in CLIENT_METRICS_ROWS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {key}")
    try:
        values = client_metrics_values(texts)
        match = values["match"]
        assert isinstance(match, tuple)
        parse_match(match)
    except SettingsError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, error.reason) from error
    interval_ms = values["interval.ms"]
    assert isinstance(interval_ms, int)
    if not INTERVAL_MS_MIN <= interval_ms <= INTERVAL_MS_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for interval.ms, interval must be between {INTERVAL_MS_MIN} and "
            f"{INTERVAL_MS_MAX} (1 hour)",
        )


def parse_match(entries: tuple[str, ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    found = []
    for entry in entries:
        parts = [part.strip() for part in entry.split("=")]
        try:
            if len(parts) != 2 or parts[0] not in MATCHED:
                raise ValueError(entry)
            found.append((parts[0], re.compile(parts[1])))
        except (ValueError, re.error):
            raise SettingsError(f"Illegal client matching pattern: {entry}", name="match") from None
    return tuple(found)
