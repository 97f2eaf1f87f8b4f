"""The topic settings that a log needs.

In: the topic's resolved settings. Out: a frozen value that many logs share.
Does not know: where a value came from, settings that only the broker uses.
"""

from dataclasses import dataclass

from barnabas.settings.topic import TopicSettings

INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Kafka's topic settings of the same names, with Kafka's defaults."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    flush_messages: int = INT64_MAX
    flush_ms: int = INT64_MAX
    file_delete_delay_ms: int = 60_000
    retention_ms: int = 7 * 24 * 3600 * 1000
    retention_bytes: int = -1
    delete: bool = True  # `cleanup.policy`
    compact: bool = False
    delete_retention_ms: int = 24 * 3600 * 1000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = INT64_MAX
    preallocate: bool = False

    @classmethod
    def of(cls, topic: TopicSettings) -> "LogSettings":
        """Select the settings of a topic that its logs need."""
        return cls(
            segment_bytes=topic.internal_segment_bytes or topic.segment_bytes,
            segment_ms=topic.max_segment_ms,
            segment_jitter_ms=topic.segment_jitter_ms,
            segment_index_bytes=topic.segment_index_bytes,
            index_interval_bytes=topic.index_interval_bytes,
            flush_messages=topic.flush_messages,
            flush_ms=topic.flush_ms,
            file_delete_delay_ms=topic.file_delete_delay_ms,
            retention_ms=topic.retention_ms,
            retention_bytes=topic.retention_bytes,
            delete=topic.delete,
            compact=topic.compact,
            delete_retention_ms=topic.delete_retention_ms,
            min_cleanable_dirty_ratio=topic.min_cleanable_dirty_ratio,
            min_compaction_lag_ms=topic.min_compaction_lag_ms,
            max_compaction_lag_ms=topic.max_compaction_lag_ms,
            preallocate=topic.preallocate,
        )


DEFAULT_SETTINGS = LogSettings()
