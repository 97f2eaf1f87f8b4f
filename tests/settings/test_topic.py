"""A topic's settings: resolved over the broker's, and what may be set on it."""

import pytest

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.settings import TopicSettings
from barnabas.settings.topic_rules import validate_topic_overrides

from .nodes import node


def test_topics_without_settings_share_the_brokers() -> None:
    broker = node(log_segment_bytes="2000000")
    assert TopicSettings.resolve({}, broker) is broker.topic_defaults
    assert broker.topic_defaults.segment_bytes == 2_000_000


def test_a_fresh_node_gives_kafkas_defaults() -> None:
    assert node().topic_defaults == TopicSettings()


def test_a_topics_own_settings_win() -> None:
    broker = node(log_segment_bytes="2000000", message_max_bytes="5")
    found = TopicSettings.resolve({"segment.bytes": "3000000", "cleanup.policy": "compact, delete"}, broker)
    assert found.segment_bytes == 3_000_000
    assert found.max_message_bytes == 5
    assert found.compact
    assert found.delete


@pytest.mark.parametrize(
    ("changes", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log_retention_hours": "2"}, 7_200_000),
        ({"log_retention_hours": "2", "log_retention_minutes": "3"}, 180_000),
        ({"log_retention_hours": "2", "log_retention_minutes": "3", "log_retention_ms": "4"}, 4),
        ({"log_retention_hours": "-1"}, -1),
        ({"log_retention_ms": "-5"}, -1),
    ],
)
def test_the_finest_unit_of_retention_decides(changes: dict[str, str], retention_ms: int) -> None:
    assert node(**changes).topic_defaults.retention_ms == retention_ms


def test_rolling_and_flushing_fall_back_too() -> None:
    found = node(
        log_roll_hours="1", log_roll_jitter_hours="2", log_flush_scheduler_interval_ms="9"
    ).topic_defaults
    assert (found.segment_ms, found.segment_jitter_ms, found.flush_ms) == (3_600_000, 7_200_000, 9)


def test_small_segments_for_tests_are_possible() -> None:
    found = TopicSettings.resolve({"internal.segment.bytes": "100"}, node())
    assert found.segment_bytes == 100


def test_a_setting_that_is_not_understood_any_more_counts_as_not_set() -> None:
    found = TopicSettings.resolve({"message.format.version": "3.0", "retention.ms": "5"}, node())
    assert found.retention_ms == 5


@pytest.mark.parametrize(("kind", "level"), [("gzip", -1), ("zstd", 3), ("lz4", 9), ("snappy", None)])
def test_the_level_goes_with_the_codec(kind: str, level: int | None) -> None:
    assert TopicSettings(compression_type=kind).compression_level == level


def test_compacted_segments_close_in_time_for_compaction() -> None:
    found = TopicSettings(cleanup_policy=("compact",), max_compaction_lag_ms=1000)
    assert found.max_segment_ms == 1000


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"foo": "1"}, "Unknown topic config name: foo"),
        ({"segment.bytes": None}, "Null value not supported for topic configs: segment.bytes"),
        (
            {"segment.bytes": "1"},
            "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            {"min.cleanable.dirty.ratio": "1.5"},
            "Invalid value 1.5 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        ({"cleanup.policy": "compact,,delete"}, "Configuration 'cleanup.policy' values must not be empty."),
        (
            {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
            "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
        ),
        (
            {"remote.storage.enable": "true"},
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        ),
    ],
)
def test_invalid_topic_settings_are_refused_with_kafkas_messages(
    overrides: dict[str, str | None], message: str
) -> None:
    with pytest.raises(KafkaError) as caught:
        validate_topic_overrides(overrides, node())
    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_CONFIG, message)


@pytest.mark.parametrize(
    ("overrides", "part"),
    [
        ({"local.retention.ms": "2000", "retention.ms": "1000"}, "Value must not be more than retention.ms"),
        ({"local.retention.bytes": "-1", "retention.bytes": "1000"}, "Value must not be -1"),
        ({"cleanup.policy": "compact"}, "unsupported for the compacted topics"),
        (
            {"remote.log.copy.disable": "true", "local.retention.ms": "5", "retention.ms": "6"},
            "must be set to the identical value",
        ),
    ],
)
def test_a_tiered_topic_keeps_less_locally_than_in_total(overrides: dict[str, str], part: str) -> None:
    broker = node(remote_log_storage_system_enable="true")
    with pytest.raises(KafkaError) as caught:
        validate_topic_overrides({"remote.storage.enable": "true", **overrides}, broker)
    assert part in caught.value.message


def test_remote_data_is_not_left_behind() -> None:
    with pytest.raises(KafkaError, match="without deleting remote data"):
        validate_topic_overrides({}, node(), existing={"remote.storage.enable": "true"})


def test_good_settings_pass() -> None:
    validate_topic_overrides(
        {
            "leader.replication.throttled.replicas": "*",
            "follower.replication.throttled.replicas": "0:1,1:2",
            "compression.type": "zstd",
            "retention.ms": "-1",
        },
        node(),
    )
