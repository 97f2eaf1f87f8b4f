"""Metrics of the transaction coordinator, looked up at each scrape, under Kafka's names.

In: the coordinator and its shards. Out: callbacks registered with the broker's metrics.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.metrics.parts.coordinator_events import coordinator_events
from barnabas.broker.metrics.parts.totals import NS_PER_MS, total_and_rate

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.coordinators.transaction_coordinator import TransactionCoordinator

MARKERS = "kafka.coordinator.transaction", "TransactionMarkerChannelManager"
VERIFICATION = "kafka.server", "AddPartitionsToTxnManager"
COORDINATOR = "kafka.server", "transaction-coordinator-metrics"


def register(broker: Broker) -> None:
    metrics, transactions = broker.metrics, broker.transactions
    metrics.gauge(
        *MARKERS,
        "UnknownDestinationQueueSize",
        "Markers that wait for a leader of their partition.",
        partial(unwritten_markers, transactions),
    )
    metrics.counter(
        *VERIFICATION,
        "VerificationFailureRate",
        "Partitions that producers wrote to without adding them to their transaction.",
        lambda: transactions.verifications_failed,
    )
    stats = transactions.stats
    metrics.adopt(stats.verifications)
    metrics.show_histograms(
        *VERIFICATION,
        "VerificationTimeMs",
        "Time to verify partitions of a transaction; those that the coordinator here verifies at once are not"
        " measured.",
        lambda: [((), stats.verifications)],
        NS_PER_MS,
    )
    total_and_rate(
        metrics,
        *COORDINATOR,
        "transaction-timeout",
        "Transactions aborted because they took too long.",
        lambda: [((), stats.transaction_timeouts)],
        "count",
    )
    for name, help, value in (
        ("transactional-id-count", "Transactional ids that are known here.", known_ids),
        ("partitions-total-size", "Bytes of the partitions of __transaction_state led here.", log_bytes),
        ("active-transaction-count", "Transactions that are open here.", active_count),
    ):
        metrics.gauge(*COORDINATOR, name, help, partial(value, transactions))
    metrics.gauge(
        *COORDINATOR,
        "active-transaction-total-time-max",
        "How long the oldest open transaction is open, in ms.",
        lambda: oldest_ms(transactions, broker.clock.now_ms()),
    )
    coordinator_events(metrics, *COORDINATOR, transactions)
    for name, load_time in (("max", transactions.load_time_ms_max), ("avg", transactions.load_time_ms_avg)):
        text = f"Milliseconds to load a partition of __transaction_state, {name} of the latest."
        metrics.gauge(*COORDINATOR, f"partition-load-time-{name}", text, load_time)


def unwritten_markers(transactions: TransactionCoordinator) -> int:
    return sum(host.unwritten_markers for host in transactions.hosts.values())


def known_ids(transactions: TransactionCoordinator) -> int:
    return sum(len(host.shard.transactions) for host in transactions.hosts.values())


def log_bytes(transactions: TransactionCoordinator) -> int:
    return sum(host.partition.log.size_bytes for host in transactions.hosts.values())


def active_count(transactions: TransactionCoordinator) -> int:
    return sum(len(host.shard.ongoing) for host in transactions.hosts.values())


def oldest_ms(transactions: TransactionCoordinator, now_ms: int) -> int:
    starts = (each.start_ms for host in transactions.hosts.values() for each in host.shard.ongoing.values())
    return max((now_ms - start_ms for start_ms in starts), default=0)
