"""Metrics of single partitions: eleven gauges each, which a setting leaves out where there are too many.

In: the broker's partitions. Out: a table in the registry; the labels of a partition are made once for a walk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from barnabas.broker.metrics.parts.replica_gauges import is_at_min, is_under, is_under_min
from barnabas.metrics import Kind, Metric, Tags, metric_of

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.partitions.partition import Partition

Look = Callable[["Partition"], Any]


def register(broker: Broker) -> None:
    broker.metrics.table(columns(), lambda: rows(broker))


def rows(broker: Broker) -> Iterator[tuple[Tags, Partition]]:
    for each in list(broker.partitions):
        yield (("topic", each.topic), ("partition", str(each.index))), each


def columns() -> list[tuple[Metric, Look]]:
    found: list[tuple[Metric, Look]] = []
    for domain, kind, values in (("kafka.log", "Log", LOG), ("kafka.cluster", "Partition", PARTITION)):
        for name, (help, look) in values.items():
            found.append((metric_of(domain, kind, name, Kind.GAUGE, help, is_detail=True), look))
    return found


def retention_share(partition: Partition) -> int:
    """The size of the log in percent of `retention.bytes`; 0 where that is unlimited."""
    limit = partition.log.settings.retention_bytes
    return partition.log.size_bytes * 100 // limit if limit > 0 else 0


def stable_lag(partition: Partition) -> int:
    if not partition.is_leader:
        return 0
    return max(partition.state.high_watermark - partition.last_stable_offset, 0)


LOG: dict[str, tuple[str, Look]] = {
    "Size": ("Bytes of a partition's log.", lambda each: each.log.size_bytes),
    "LogEndOffset": ("The next offset of a partition.", lambda each: each.log.end_offset),
    "LogStartOffset": ("The first offset of a partition.", lambda each: each.log.log_start_offset),
    "NumLogSegments": ("Segments of a partition's log.", lambda each: len(each.log.segments)),
    "RetentionSizeInPercent": ("Size of a log in percent of retention.bytes.", retention_share),
}
PARTITION: dict[str, tuple[str, Look]] = {
    "AtMinIsr": (
        "1 where a partition led here can lose no more replicas.",
        lambda each: 1 if each.is_leader and is_at_min(each) else 0,
    ),
    "InSyncReplicasCount": (
        "In-sync replicas of a partition led here.",
        lambda each: len(each.state.isr) if each.is_leader else 0,
    ),
    "LastStableOffsetLag": ("Records behind the last stable offset, led here.", stable_lag),
    "ReplicasCount": (
        "Replicas of a partition led here.",
        lambda each: each.replica_count if each.is_leader else 0,
    ),
    "UnderMinIsr": (
        "1 where a partition led here refuses acks=all.",
        lambda each: 1 if each.is_leader and is_under_min(each) else 0,
    ),
    "UnderReplicated": (
        "1 where a partition led here has replicas that are not in sync.",
        lambda each: 1 if each.is_leader and is_under(each) else 0,
    ),
}
