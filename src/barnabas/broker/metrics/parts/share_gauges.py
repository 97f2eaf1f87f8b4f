"""Metrics of share groups at the leaders of partitions, looked up at each scrape, under Kafka's names.

In: the share partitions of this broker, once there are any. Out: callbacks registered with the metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.metrics.metrics import NS_PER_MS

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.metrics.metrics import Labels
    from barnabas.broker.shares.led_share_partition import LedSharePartition
    from barnabas.broker.shares.share_partitions import SharePartitions

GROUPS = "kafka.server", "ShareGroupMetrics"
PARTITIONS = "kafka.server", "SharePartitionMetrics"
SESSIONS = "kafka.server", "ShareSessionCache"
PURGATORY = "kafka.server", "DelayedOperationPurgatory"
TYPES = {1: "Accept", 2: "Release", 3: "Reject", 4: "Renew"}


def register(broker: Broker) -> None:
    metrics = broker.metrics

    def value(look: Callable[[SharePartitions], float]) -> Callable[[], float]:
        return lambda: look(broker.shares) if broker.has_shares else 0

    def each(
        look: Callable[[LedSharePartition], float],
    ) -> Callable[[], list[tuple[Labels, float]]]:
        return lambda: [(labels(share), look(share)) for share in broker.shares] if broker.has_shares else []

    waiting = value(lambda shares: shares.waiting_fetches)
    for name in ("PurgatorySize", "NumDelayedOperations"):
        metrics.gauges(
            *PURGATORY,
            name,
            "Share fetches that wait for records.",
            lambda: [({"delayedOperation": "ShareFetch"}, waiting())],
        )
    metrics.counter(
        "kafka.server",
        "DelayedShareFetchMetrics",
        "ExpiresPerSec",
        "Share fetches that waited as long as they may.",
        value(lambda shares: shares.metrics.expired_fetches),
    )
    metrics.gauge(
        *SESSIONS, "ShareSessionsCount", "Share sessions.", value(lambda shares: len(shares.sessions))
    )
    metrics.gauge(
        *SESSIONS,
        "SharePartitionsCount",
        "Partitions in share sessions.",
        value(lambda shares: shares.sessions.partition_count),
    )
    metrics.counter(
        *SESSIONS,
        "ShareSessionEvictionsPerSec",
        "Share sessions that ended with their connection.",
        value(lambda shares: shares.sessions.evictions),
    )
    metrics.counters(
        *GROUPS,
        "RecordAcknowledgementsPerSec",
        "Acknowledged records.",
        lambda: [
            ({"ackType": name}, broker.shares.metrics.acknowledged[kind] if broker.has_shares else 0)
            for kind, name in TYPES.items()
        ],
    )
    metrics.show_histograms(
        *GROUPS,
        "PartitionLoadTimeMs",
        "Milliseconds to load a share partition.",
        lambda: [((), broker.shares.metrics.loads if broker.has_shares else None)],
        NS_PER_MS,
    )
    metrics.gauges(
        *PARTITIONS,
        "InFlightMessageCount",
        "Records in flight.",
        each(lambda share: share.state.in_flight if share.state is not None else 0),
    )
    metrics.gauges(
        *PARTITIONS,
        "InFlightBatchCount",
        "Ranges of records in flight that are in the same state.",
        each(lambda share: len(share.state.runs) if share.state is not None else 0),
    )
    metrics.counters(
        *PARTITIONS,
        "AcquisitionLockTimeoutPerSec",
        "Records whose acquisition lock ran out.",
        each(lambda share: share.lock_timeouts),
    )


def labels(share: LedSharePartition) -> Labels:
    partition = share.partition
    return {"group": share.group, "topic": partition.topic, "partition": str(partition.index)}
