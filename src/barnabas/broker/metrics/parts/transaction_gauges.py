"""Metrics of the transaction coordinator, looked up at each scrape, under Kafka's names.

In: the coordinator and its shards. Out: callbacks registered with the broker's metrics.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

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
    for name, load_time in (("max", transactions.load_time_ms_max), ("avg", transactions.load_time_ms_avg)):
        text = f"Milliseconds to load a partition of __transaction_state, {name} of the latest."
        metrics.gauge(*COORDINATOR, f"partition-load-time-{name}", text, load_time)


def unwritten_markers(transactions: TransactionCoordinator) -> int:
    return sum(host.unwritten_markers for host in transactions.hosts.values())
