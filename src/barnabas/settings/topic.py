"""A topic's settings: its own values over the broker's, as typed attributes.

In: the overrides of a topic, and the broker settings for the rest. Out: `TopicSettings`; topics without
overrides share one object. Precedence: topic, dynamic broker, dynamic default, static broker, default.
Does not know: where values are stored (`metadata`), which code uses them (`storage`, `broker`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from barnabas.settings.definitions import TOPIC_ROWS, topic_defaults
from barnabas.settings.errors import SettingsError
from barnabas.settings.synonyms import FALLBACKS, TOPIC_TO_BROKER
from barnabas.settings.tables.row import Setting
from barnabas.settings.validators import check_value
from barnabas.settings.values import Value, parse_value

if TYPE_CHECKING:
    from barnabas.settings.broker import BrokerSettings

INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Kafka's and our topic settings with their defaults. Dots in names are underscores here."""

    barnabas_produce_validation: str = "relaxed"
    cleanup_policy: tuple[str, ...] = ("delete",)
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"
    compression_zstd_level: int = 3
    confluent_key_schema_validation: bool = False
    confluent_key_subject_name_strategy: str = "io.confluent.kafka.serializers.subject.TopicNameStrategy"
    confluent_value_schema_validation: bool = False
    confluent_value_subject_name_strategy: str = "io.confluent.kafka.serializers.subject.TopicNameStrategy"
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = INT64_MAX
    flush_ms: int = INT64_MAX
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    index_interval_bytes: int = 4096
    internal_segment_bytes: int | None = None
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    local_retention_bytes: int = -2
    local_retention_ms: int = -2
    max_compaction_lag_ms: int = INT64_MAX
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = INT64_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    remote_storage_enable: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1 << 30
    segment_index_bytes: int = 10 << 20
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    unclean_leader_election_enable: bool = False

    @classmethod
    def resolve(cls, overrides: Mapping[str, str], broker: BrokerSettings) -> TopicSettings:
        """The effective settings. An override that cannot be parsed any more is ignored."""
        base = broker.topic_defaults
        if not overrides:
            return base
        changes: dict[str, Any] = {}
        for name, text in overrides.items():
            try:
                changes[name.replace(".", "_")] = parse_topic_value(name, text)
            except SettingsError:
                continue  # validated when it was set, so this is a setting of a newer version
        return with_values(base, changes)

    @property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def max_segment_ms(self) -> int:
        """When to roll a segment; on a compacted topic early enough for `max.compaction.lag.ms`."""
        return min(self.max_compaction_lag_ms, self.segment_ms) if self.compact else self.segment_ms

    @property
    def compression_level(self) -> int | None:
        """The compression level for `compression_type`, or None."""
        level: int | None = getattr(self, f"compression_{self.compression_type}_level", None)
        return level


def with_values(base: TopicSettings, values: dict[str, Any]) -> TopicSettings:
    segment_bytes = values.get("internal_segment_bytes")
    if segment_bytes is not None:
        values = {**values, "segment_bytes": segment_bytes}
    return replace(base, **values)


def broker_topic_defaults(values: Mapping[str, Any]) -> TopicSettings:
    """The settings of a topic without overrides, from a broker's typed values."""
    changes = {}
    for field in fields(TopicSettings):
        name = TOPIC_TO_BROKER.get(field.name.replace("_", "."))
        if name is not None:
            changes[field.name] = effective(values, name)
    return replace(TopicSettings(), **changes)


def effective(values: Mapping[str, Any], name: str) -> Any:
    """A broker setting's value, or that of its fallback in a coarser unit."""
    value = values[name]
    for other, factor in FALLBACKS.get(name, ()):
        if value is None and values[other] is not None:
            value = values[other] * factor
    if name == "log.retention.ms" and value < 0:
        return -1
    return value


def parse_topic_value(name: str, text: str) -> Value:
    """The typed value of a topic setting, or SettingsError."""
    row = TOPIC_ROWS.get(name)
    if row is None:
        raise SettingsError(f"Unknown topic config name: {name}", name=name)
    value = parse_value(name, row[1], text)
    check_value(Setting._make(row), value)
    return value


def topic_values(overrides: Mapping[str, str], broker: BrokerSettings | None) -> dict[str, Value]:
    """All topic settings by name: the topic's values over the broker's; SettingsError for a wrong one."""
    values = dict(topic_defaults())
    if broker is not None:
        for name in TOPIC_TO_BROKER:
            values[name] = getattr(broker.topic_defaults, name.replace(".", "_"))
    for name, text in overrides.items():
        values[name] = parse_topic_value(name, text)
    return values
