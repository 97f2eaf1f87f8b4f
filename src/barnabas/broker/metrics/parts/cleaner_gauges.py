"""Metrics of the log cleaner, looked up at each scrape, under Kafka's names.

In: the cleaner. Out: callbacks registered with the broker's metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.storage.compaction.job import CleaningStats
    from barnabas.storage.files.names import TopicPartition

Labelled = Iterable[tuple[dict[str, str], float]]
CLEANER = "kafka.log", "LogCleaner"
MANAGER = "kafka.log", "LogCleanerManager"


def register(broker: Broker) -> None:
    metrics, cleaning = broker.metrics, broker.cleaning
    state = cleaning.state

    def by_dir(value: Callable[[TopicPartition], int]) -> Labelled:
        counts: Counter[str] = Counter({directory.path: 0 for directory in broker.log_dirs.online()})
        for topic_partition in state.uncleanable():
            found = broker.log_dirs.logs.get(topic_partition)
            if found is not None:
                counts[found.directory.rpartition("/")[0]] += value(topic_partition)
        return [({"logDirectory": path}, count) for path, count in sorted(counts.items())]

    def of_last_pass(value: Callable[[CleaningStats], float]) -> float:
        return value(state.last_stats) if state.last_stats is not None else 0.0

    metrics.gauge(
        *CLEANER, "DeadThreadCount", "Cleaners that should run and do not.", lambda: cleaning.dead_count
    )
    metrics.counter(
        "kafka.utils",
        "Throttler",
        "cleaner-io",
        "Bytes that the cleaner read and wrote, counted at the end of each pass.",
        lambda: state.bytes_moved,
    )
    metrics.gauge(
        *CLEANER,
        "max-buffer-utilization-percent",
        "Use of the memory for keys in the last pass, in percent.",
        lambda: of_last_pass(lambda stats: round(100 * stats.buffer_utilization)),
    )
    metrics.gauge(
        *CLEANER,
        "cleaner-recopy-percent",
        "Bytes that the last pass wrote, in percent of those that it read.",
        lambda: of_last_pass(lambda stats: round(100 * stats.bytes_written / max(stats.bytes_read, 1))),
    )
    metrics.gauge(
        *CLEANER,
        "max-clean-time-secs",
        "Duration of the last pass.",
        lambda: of_last_pass(lambda stats: int(stats.seconds)),
    )
    metrics.gauge(
        *CLEANER,
        "max-compaction-delay-secs",
        "The longest time by which a log has exceeded max.compaction.lag.ms.",
        lambda: state.max_delay_ms // 1000,
    )
    metrics.gauge(
        *MANAGER,
        "max-dirty-percent",
        "The dirty ratio of the dirtiest log, in percent.",
        lambda: int(100 * state.max_dirty_ratio),
    )
    metrics.gauge(
        *MANAGER,
        "time-since-last-run-ms",
        "Time since the cleaner last looked for dirty logs.",
        lambda: broker.clock.now_ms() - state.last_look_ms,
    )
    metrics.gauges(
        *MANAGER,
        "uncleanable-partitions-count",
        "Partitions that cannot be cleaned.",
        lambda: by_dir(lambda topic_partition: 1),
    )
    metrics.gauges(
        *MANAGER,
        "uncleanable-bytes",
        "Dirty bytes of partitions that cannot be cleaned.",
        lambda: by_dir(state.dirty_bytes),
    )
