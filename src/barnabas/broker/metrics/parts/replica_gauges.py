"""Metrics of replicas and their in-sync state, under Kafka's names.

In: the broker. Out: callbacks registered with the broker's metrics. One walk over all partitions, in steps,
counts for all gauges of a scrape.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.partitions.partition import Partition

LATE_BY_MS = 5 * 60 * 1000  # the time that a coordinator has to abort a transaction
KIND = "kafka.server", "ReplicaManager"
COUNTED = {
    "LeaderCount": "Partitions that this broker leads.",
    "UnderReplicatedPartitions": "Partitions led here with replicas that are not in sync.",
    "UnderMinIsrPartitionCount": "Partitions led here that refuse acks=all.",
    "AtMinIsrPartitionCount": "Partitions led here that can lose no more replicas.",
    "ReassigningPartitions": "Partitions led here whose replicas change.",
    "ProducerIdCount": "Idempotent and transactional producers that partitions remember.",
    "PartitionsWithLateTransactionsCount": (
        "Partitions with a transaction that is open for longer than any may be."
    ),
}
OF_CONTROLLERS = ("LeaderCount", "ProducerIdCount", "PartitionsWithLateTransactionsCount")


def register(broker: Broker) -> None:
    metrics = broker.metrics
    names = tuple(COUNTED) if broker.settings.is_broker else OF_CONTROLLERS
    metrics.walk([(*KIND, name, COUNTED[name]) for name in names], lambda: count(broker, names))
    if not broker.settings.is_broker:
        return
    replicas = broker.in_sync_replicas
    metrics.counter(*KIND, "IsrExpandsPerSec", "Replicas that came in sync.", lambda: replicas.expands)
    metrics.counter(*KIND, "IsrShrinksPerSec", "Replicas that fell out of sync.", lambda: replicas.shrinks)
    metrics.counter(*KIND, "FailedIsrUpdatesPerSec", "Changes that were refused.", lambda: replicas.failures)


def count(broker: Broker, names: tuple[str, ...]) -> Generator[None, None, list[int]]:
    found = dict.fromkeys(COUNTED, 0)
    late_before_ms = broker.clock.now_ms() - broker.settings["transaction.max.timeout.ms"] - LATE_BY_MS

    def look(partition: Partition) -> None:
        log = partition.log
        if log.producers_loaded:
            found["ProducerIdCount"] += len(log.producers)
            begun_ms = log.producers.oldest_transaction_timestamp()
            found["PartitionsWithLateTransactionsCount"] += 0 < begun_ms < late_before_ms
        if partition.is_leader:
            found["LeaderCount"] += 1
            found["UnderReplicatedPartitions"] += is_under(partition)
            found["UnderMinIsrPartitionCount"] += is_under_min(partition)
            found["AtMinIsrPartitionCount"] += is_at_min(partition)
            found["ReassigningPartitions"] += reassigning(broker, partition)

    yield from broker.partitions.in_steps(look)
    return [found[name] for name in names]


def is_under(partition: Partition) -> bool:
    return len(partition.state.isr) < partition.replica_count


def needed(partition: Partition) -> int:
    return min(partition.min_insync_replicas, partition.replica_count)


def is_under_min(partition: Partition) -> bool:
    return len(partition.state.isr) < needed(partition)


def is_at_min(partition: Partition) -> bool:
    return len(partition.state.isr) == needed(partition)


def reassigning(broker: Broker, partition: Partition) -> bool:
    found = broker.image.topics.partition(partition.topic, partition.index)
    return found is not None and bool(found.adding_replicas or found.removing_replicas)
