"""Metrics of followers, of waiting requests and of fetch sessions, under Kafka's names.

In: the broker. Out: sources registered with the metrics. One fetcher follows all partitions of a leader that
hash to it; there are no fetcher threads that could die, so dead ones are 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.broker.metrics.parts.totals import NS_PER_MS
from barnabas.metrics import Kind, Tags, metric_of

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.replicas.following import Following

FETCHERS = "kafka.server", "ReplicaFetcherManager"
MOVERS = "kafka.server", "ReplicaAlterLogDirsManager"
PURGATORY = "kafka.server", "DelayedOperationPurgatory"
REPLICA = (("clientId", "Replica"),)
MOVER = (("clientId", "ReplicaAlterLogDirs"),)


def register(broker: Broker, following: Following) -> None:
    metrics = broker.metrics
    for (domain, kind), tags, lag, failed in (
        (FETCHERS, REPLICA, lambda: max_lag(following), lambda: following.failed_count),
        (MOVERS, MOVER, lambda: max_move_lag(broker), lambda: 0),
    ):
        for name, help, value in (
            ("MaxLag", "The largest lag of a follower behind its leader, in records.", lag),
            ("FailedPartitionsCount", "Partitions that cannot be followed now.", failed),
            ("DeadThreadCount", "Always 0: there are no threads that could die.", lambda: 0),
        ):
            metrics.gauges(domain, kind, name, help, lambda tags=tags, value=value: [(tags, value())])  # type: ignore[misc]
    metrics.gauges(
        *FETCHERS,
        "MinFetchRate",
        "Fetches a second of the fetcher that has the fewest, about the last minute.",
        lambda: [(REPLICA, min_fetch_rate(broker, following))],
    )
    for kind, throttle in (
        ("LeaderReplication", broker.leader_throttle),
        ("FollowerReplication", following.throttle),
    ):
        metrics.gauge(
            "kafka.server",
            kind,
            "byte-rate",
            "Bytes a second of throttled replicas, sent to followers or fetched from leaders.",
            lambda throttle=throttle: throttle.bytes_per_second,  # type: ignore[misc]
        )
    registry = metrics.registry
    lags = metric_of(
        "kafka.server",
        "FetcherLagMetrics",
        "ConsumerLag",
        Kind.GAUGE,
        "Records that a follower on this broker is behind its leader.",
        is_detail=True,
    )
    registry.add(lags, lambda: fetcher_lags(broker, following))
    fetches = metric_of(
        "kafka.server", "FetcherStats", "RequestsPerSec", Kind.COUNTER, "Fetches sent to leaders."
    )
    registry.add(fetches, lambda: fetcher_requests(broker, following))
    metrics.gauge(
        "kafka.server",
        "AssignmentsManager",
        "QueuedReplicaToDirAssignments",
        "Replicas whose log dir the controller has not committed.",
        lambda: broker.directories.pending,
    )
    waiting(broker)


def waiting(broker: Broker) -> None:
    metrics, stats = broker.metrics, broker.fetch_stats

    def sizes() -> Iterator[tuple[Tags, int]]:
        for operation, size in (
            ("Produce", len(broker.purgatory)),
            ("Fetch", sum(stats.waiting)),
        ):
            yield (("delayedOperation", operation),), size

    for name, help in (
        ("PurgatorySize", "Requests that wait."),
        ("NumDelayedOperations", "Requests that wait, as timers see them."),
    ):
        metrics.gauges(*PURGATORY, name, help, sizes)
    metrics.counter(
        "kafka.server",
        "DelayedProduceMetrics",
        "ExpiresPerSec",
        "Produce requests that were not committed in time.",
        lambda: broker.purgatory.expired,
    )
    metrics.counters(
        "kafka.server",
        "DelayedFetchMetrics",
        "ExpiresPerSec",
        "Fetches that waited as long as they may.",
        lambda: [
            ((("fetcherType", kind),), stats.expired[place])
            for place, kind in enumerate(("consumer", "follower"))
        ],
    )
    sessions = broker.fetch_sessions
    cache = "kafka.server", "FetchSessionCache"
    metrics.gauge(
        *cache,
        "NumIncrementalFetchPartitionsCached",
        "Partitions in fetch sessions.",
        lambda: sessions.partitions_cached,
    )
    metrics.counter(
        *cache,
        "IncrementalFetchSessionEvictionsPerSec",
        "Fetch sessions that were dropped for others.",
        lambda: sessions.evictions,
    )
    disk(broker)


def disk(broker: Broker) -> None:
    metrics, stats = broker.metrics, broker.fetch_stats
    metrics.counter(
        "barnabas.log",
        "PageCache",
        "MissesPerSec",
        "Fetches whose records were not in the page cache.",
        lambda: stats.cold_fetches,
    )
    metrics.adopt(stats.cold_reads)
    metrics.show_histograms(
        "barnabas.log",
        "Disk",
        "ReadTimeMs",
        "Time to read records from the disk.",
        lambda: [((), stats.cold_reads)],
        NS_PER_MS,
    )
    syncs = metrics.adopt(broker.log_dirs.context.syncs)
    metrics.show_histograms(
        "kafka.log",
        "LogFlushStats",
        "LogFlushRateAndTimeMs",
        "Time to sync a log to its disk.",
        lambda: [((), syncs)],
        NS_PER_MS,
    )


def max_lag(following: Following) -> int:
    return max((lag for _, _, lag in following.lags()), default=0)


def max_move_lag(broker: Broker) -> int:
    found = 0
    for where, copy in list(broker.log_dirs.future_logs.items()):
        log = broker.log_dirs.logs.get(where)
        if log is not None:
            found = max(found, log.end_offset - copy.end_offset)
    return found


def min_fetch_rate(broker: Broker, following: Following) -> float:
    metric = metric_of(
        "kafka.server", "FetcherStats", "RequestsPerSec", Kind.COUNTER, "Fetches sent to leaders."
    )
    rates = [
        broker.metrics.registry.rates(metric, tags, count)["OneMinuteRate"]
        for tags, count in fetcher_requests(broker, following)
    ]
    return min(rates, default=0.0)


def fetcher_requests(broker: Broker, following: Following) -> Iterator[tuple[Tags, int]]:
    for leader_id, number, count in following.requests():
        client = f"ReplicaFetcherThread-{number}-{leader_id}"
        yield (("clientId", client), *address(broker, leader_id)), count


def address(broker: Broker, broker_id: int) -> Tags:
    found = broker.image.cluster.brokers.get(broker_id)
    endpoint = next(iter(found.listeners.values()), None) if found is not None else None
    if endpoint is None:
        return (("brokerHost", "unknown"), ("brokerPort", "-1"))
    return (("brokerHost", endpoint.host), ("brokerPort", str(endpoint.port)))


def fetcher_lags(broker: Broker, following: Following) -> Iterator[tuple[Tags, int]]:
    for source, partition, lag in following.lags():
        client = f"ReplicaFetcherThread-{source.number}-{source.leader_id}"
        yield (
            (("clientId", client), ("topic", partition.topic), ("partition", str(partition.index))),
            lag,
        )
