"""Gauges of a broker, looked up at each scrape, under Kafka's names.

In: the broker and its listeners. Out: callbacks registered with the broker's metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.metrics.parts import partition_tables, replica_gauges

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def register(broker: Broker) -> None:
    metrics = broker.metrics
    partitions = broker.partitions

    replicas = "kafka.server", "ReplicaManager"
    metrics.gauge(*replicas, "PartitionCount", "Partitions on this broker.", lambda: len(partitions))
    metrics.gauge(
        *replicas,
        "OfflineReplicaCount",
        "Partitions of this broker whose log directory failed.",
        lambda: partitions.offline_count,
    )
    metrics.gauge(
        "kafka.server",
        "FetchSessionCache",
        "NumIncrementalFetchSessions",
        "Fetch sessions.",
        lambda: len(broker.fetch_sessions),
    )
    replica_gauges.register(broker)
    log_dirs(broker)
    partition_tables.register(broker)


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
