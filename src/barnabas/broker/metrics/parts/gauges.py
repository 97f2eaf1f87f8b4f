"""Gauges of a broker, looked up at each scrape, under Kafka's names.

In: the broker and its listeners. Out: callbacks registered with the broker's metrics.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.broker.metrics.parts import partition_tables, replica_gauges

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.partitions.partition import Partition

LATE_BY_MS = 5 * 60 * 1000  # the time that a coordinator has to abort a transaction


def register(broker: Broker) -> None:
    metrics = broker.metrics
    partitions = broker.partitions

    replicas = "kafka.server", "ReplicaManager"
    metrics.gauge(*replicas, "PartitionCount", "Partitions on this broker.", lambda: len(partitions))
    metrics.gauge(
        *replicas,
        "LeaderCount",
        "Partitions that this broker leads.",
        lambda: sum(partition.is_leader for partition in partitions),
    )
    metrics.gauge(
        *replicas,
        "OfflineReplicaCount",
        "Partitions of this broker whose log directory failed.",
        lambda: partitions.offline_count,
    )
    metrics.gauge(
        *replicas,
        "ProducerIdCount",
        "Idempotent and transactional producers that partitions remember.",
        lambda: sum(len(partition.log.producers) for partition in with_producers(broker)),
    )
    metrics.gauge(
        *replicas,
        "PartitionsWithLateTransactionsCount",
        "Partitions with a transaction that is open for longer than any may be.",
        lambda: sum(is_late(partition, broker) for partition in with_producers(broker)),
    )
    metrics.gauge(
        "kafka.server",
        "FetchSessionCache",
        "NumIncrementalFetchSessions",
        "Fetch sessions.",
        lambda: len(broker.fetch_sessions),
    )
    if broker.settings.is_broker:
        replica_gauges.register(broker)
    log_dirs(broker)
    partition_tables.register(broker)


def with_producers(broker: Broker) -> Iterable[Partition]:
    """Partitions whose producer state is loaded."""
    return (partition for partition in broker.partitions if partition.log.producers_loaded)


def is_late(partition: Partition, broker: Broker) -> bool:
    begun_ms = partition.log.producers.oldest_transaction_timestamp()
    longest_ms: int = broker.settings["transaction.max.timeout.ms"]
    return 0 < begun_ms < broker.clock.now_ms() - longest_ms - LATE_BY_MS


def log_dirs(broker: Broker) -> None:
    dirs = broker.log_dirs.dirs
    kind = "kafka.log", "LogManager"
    offline, cordoned = "Log dirs whose disk failed.", "Log dirs that get no new partitions."
    metrics = broker.metrics
    metrics.gauge(
        *kind,
        "OfflineLogDirectoryCount",
        offline,
        lambda: sum(each.failure is not None for each in dirs),
    )
    metrics.gauge(
        *kind, "CordonedLogDirectoryCount", cordoned, lambda: sum(each.is_cordoned for each in dirs)
    )
    metrics.gauges(
        *kind,
        "LogDirectoryOffline",
        offline,
        lambda: [({"logDirectory": each.absolute_path}, int(each.failure is not None)) for each in dirs],
    )
    metrics.gauges(
        *kind,
        "LogDirectoryCordoned",
        cordoned,
        lambda: [({"logDirectory": each.absolute_path}, int(each.is_cordoned)) for each in dirs],
    )
