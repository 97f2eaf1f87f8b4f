"""What a group coordinator shows: looked up at each scrape, under Kafka's names.

In: the coordinator and its shards. Out: callbacks registered with the broker's metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.group_coordinator import GroupCoordinator
    from barnabas.groups.shard import GroupShard

Labelled = Iterable[tuple[dict[str, str], float]]
CLASSIC_STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
CONSUMER_STATES = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")
MANAGER = "kafka.coordinator.group", "GroupMetadataManager"
COORDINATOR = "kafka.server", "group-coordinator-metrics"


def register(broker: Broker) -> None:
    metrics, groups = broker.metrics, broker.groups
    metrics.gauge(*MANAGER, "NumOffsets", "Committed offsets.", partial(offset_count, groups))
    metrics.gauge(*MANAGER, "NumGroups", "Classic groups.", partial(classic_count, groups, None))
    for state in CLASSIC_STATES:
        text = f"Classic groups in state {state}."
        metrics.gauge(*MANAGER, f"NumGroups{state}", text, partial(classic_count, groups, state))
    metrics.gauges(
        *COORDINATOR,
        "num-partitions",
        "Partitions of __consumer_offsets that this broker coordinates, by state.",
        partial(partitions, groups),
    )
    metrics.gauges(*COORDINATOR, "group-count", "Groups by protocol.", partial(by_protocol, groups))
    metrics.gauges(
        *COORDINATOR, "consumer-group-count", "Consumer groups by state.", partial(consumer_states, groups)
    )
    for name, look in (("max", groups.load_time_ms_max), ("avg", groups.load_time_ms_avg)):
        text = f"Milliseconds to load a partition of __consumer_offsets, {name} of the latest."
        metrics.gauge(*COORDINATOR, f"partition-load-time-{name}", text, look)


def shards(groups: GroupCoordinator) -> Iterator[GroupShard]:
    return (host.shard for host in groups.hosts.values() if host.error is None)


def offset_count(groups: GroupCoordinator) -> int:
    return sum(shard.offsets.count for shard in shards(groups))


def classic_count(groups: GroupCoordinator, state: str | None) -> int:
    if state is None:
        return sum(len(shard.classic.state.groups) for shard in shards(groups))
    return sum(
        group.state.value == state
        for shard in shards(groups)
        for group in shard.classic.state.groups.values()
    )


def partitions(groups: GroupCoordinator) -> Labelled:
    return [({"state": state}, count) for state, count in groups.partitions_by_state().items()]


def by_protocol(groups: GroupCoordinator) -> Labelled:
    yield {"protocol": "classic"}, classic_count(groups, None)
    yield {"protocol": "consumer"}, sum(len(shard.consumer.state.groups) for shard in shards(groups))


def consumer_states(groups: GroupCoordinator) -> Labelled:
    found = Counter(
        group.state.value for shard in shards(groups) for group in shard.consumer.state.groups.values()
    )
    return [({"state": state}, found[state]) for state in CONSUMER_STATES]
