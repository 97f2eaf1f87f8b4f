"""Metrics of the share coordinator, looked up at each scrape, under Kafka's names.

In: the coordinator and its shards. Out: callbacks registered with the broker's metrics.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.metrics.parts.coordinator_events import coordinator_events
from barnabas.broker.metrics.parts.totals import total_and_rate

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.coordinators.share_coordinator import ShareCoordinator

Labelled = Iterable[tuple[dict[str, str], float]]
COORDINATOR = "kafka.server", "share-coordinator-metrics"


def register(broker: Broker) -> None:
    metrics, shares = broker.metrics, broker.share_coordinator
    metrics.gauges(
        *COORDINATOR,
        "num-partitions",
        "Partitions of __share_group_state that this broker coordinates, by state.",
        partial(partitions, shares),
    )
    total_and_rate(metrics, *COORDINATOR, "write", "Writes of share state.", lambda: [((), shares.writes)])
    coordinator_events(metrics, *COORDINATOR, shares)
    for name, latency in (("max", shares.write_latency_ms_max), ("avg", shares.write_latency_ms_avg)):
        text = f"Milliseconds until a write of share state is committed, {name} of the latest."
        metrics.gauge(*COORDINATOR, f"write-latency-{name}", text, latency)
    for name, load_time in (("max", shares.load_time_ms_max), ("avg", shares.load_time_ms_avg)):
        text = f"Milliseconds to load a partition of __share_group_state, {name} of the latest."
        metrics.gauge(*COORDINATOR, f"partition-load-time-{name}", text, load_time)
    metrics.gauges(
        *COORDINATOR,
        "last-pruned-offset",
        "Offset that a partition of __share_group_state was last pruned to.",
        partial(pruned_offsets, shares),
    )


def partitions(shares: ShareCoordinator) -> Labelled:
    return [({"state": state}, count) for state, count in shares.partitions_by_state().items()]


def pruned_offsets(shares: ShareCoordinator) -> Labelled:
    return [
        ({"topic": host.partition.topic, "partition": str(index)}, host.last_pruned_offset)
        for index, host in shares.hosts.items()
        if host.last_pruned_offset is not None
    ]
