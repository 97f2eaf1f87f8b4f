"""Metrics of replicas and their in-sync state, under Kafka's names.

In: the broker. Out: callbacks registered with the broker's metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.partitions.partition import Partition


def register(broker: Broker) -> None:
    metrics = broker.metrics

    def led(holds: Callable[[Partition], bool]) -> Callable[[], float]:
        return lambda: sum(each.is_leader and holds(each) for each in broker.partitions)

    kind = "kafka.server", "ReplicaManager"
    for name, text, holds in (
        ("UnderReplicatedPartitions", "Partitions led here with replicas that are not in sync.", is_under),
        ("UnderMinIsrPartitionCount", "Partitions led here that refuse acks=all.", is_under_min),
        ("AtMinIsrPartitionCount", "Partitions led here that can lose no more replicas.", is_at_min),
    ):
        metrics.gauge(*kind, name, text, led(holds))
    replicas = broker.in_sync_replicas
    metrics.counter(*kind, "IsrExpandsPerSec", "Replicas that came in sync.", lambda: replicas.expands)
    metrics.counter(*kind, "IsrShrinksPerSec", "Replicas that fell out of sync.", lambda: replicas.shrinks)
    metrics.counter(*kind, "FailedIsrUpdatesPerSec", "Changes that were refused.", lambda: replicas.failures)
    metrics.gauge(
        *kind,
        "ReassigningPartitions",
        "Partitions led here whose replicas change.",
        lambda: sum(reassigning(broker, each) for each in broker.partitions if each.is_leader),
    )


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
