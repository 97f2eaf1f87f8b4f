"""Metrics of the group coordinator, looked up at each scrape, under Kafka's names.

In: the coordinator and its shards. Out: callbacks registered with the broker's metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.metrics.parts.coordinator_events import coordinator_events
from barnabas.broker.metrics.parts.totals import total_and_rate

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.coordinators.group_coordinator import GroupCoordinator
    from barnabas.groups.shard import GroupShard
    from barnabas.runtime.clock import Clock

Labelled = Iterable[tuple[dict[str, str], float]]
NEW_EPOCHS = "New epochs of {} groups, except those of members that left."
CLASSIC_STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
CONSUMER_STATES = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")
SHARE_STATES = ("Empty", "Stable", "Dead")
STREAMS_STATES = ("Empty", "NotReady", "Assigning", "Reconciling", "Stable", "Dead")
COUNTED_MS = 20  # a count is used again for this long, so that all gauges of a scrape share it
MANAGER = "kafka.coordinator.group", "GroupMetadataManager"
COORDINATOR = "kafka.server", "group-coordinator-metrics"


def register(broker: Broker) -> None:
    metrics, groups = broker.metrics, broker.groups
    metrics.gauge(*MANAGER, "NumOffsets", "Committed offsets.", partial(offset_count, groups))
    metrics.gauge(*MANAGER, "NumGroups", "Classic groups.", partial(classic_count, groups))
    counts = ClassicCounts(groups, broker.clock)
    for state in CLASSIC_STATES:
        text = f"Classic groups in state {state}."
        metrics.gauge(*MANAGER, f"NumGroups{state}", text, partial(counts.of, state))
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
    metrics.gauges(*COORDINATOR, "share-group-count", "Share groups by state.", partial(share_states, groups))
    metrics.gauges(
        *COORDINATOR, "streams-group-count", "Streams groups by state.", partial(streams_states, groups)
    )
    stats = groups.stats
    for stem, help, count in (
        ("offset-commit", "Offsets committed.", lambda: stats.offset_commits),
        ("offset-expiration", "Offsets that expired.", lambda: stats.offset_expirations),
        ("offset-deletion", "Offsets deleted by requests.", lambda: stats.offset_deletions),
        ("group-completed-rebalance", "Rebalances of classic groups.", lambda: stats.completed_rebalances),
        (
            "consumer-group-rebalance",
            "New epochs of consumer groups, but those of members that leave.",
            lambda: stats.consumer_rebalances,
        ),
        ("share-group-rebalance", NEW_EPOCHS.format("share"), groups.share_rebalance_count),
        ("streams-group-rebalance", NEW_EPOCHS.format("streams"), groups.streams_rebalance_count),
    ):
        total_and_rate(metrics, *COORDINATOR, stem, help, lambda count=count: [((), count())], "count")  # type: ignore[misc]
    coordinator_events(metrics, *COORDINATOR, groups)
    for name, load_time in (("max", groups.load_time_ms_max), ("avg", groups.load_time_ms_avg)):
        text = f"Milliseconds to load a partition of __consumer_offsets, {name} of the latest."
        metrics.gauge(*COORDINATOR, f"partition-load-time-{name}", text, load_time)


def shards(groups: GroupCoordinator) -> Iterator[GroupShard]:
    return (host.shard for host in groups.hosts.values() if host.error is None)


def offset_count(groups: GroupCoordinator) -> int:
    return sum(shard.offsets.count for shard in shards(groups))


def classic_count(groups: GroupCoordinator) -> int:
    return sum(len(shard.classic.state.groups) for shard in shards(groups))


class ClassicCounts:
    """Counts classic groups once for all gauges of a scrape, since there may be tens of thousands."""

    def __init__(self, groups: GroupCoordinator, clock: Clock) -> None:
        self._groups = groups
        self._clock = clock
        self._counted_ms: int | None = None
        self._counts: Counter[str] = Counter()

    def of(self, state: str) -> int:
        now_ms = self._clock.steady_ms()
        if self._counted_ms is None or now_ms - self._counted_ms > COUNTED_MS:
            self._counted_ms = now_ms
            self._counts = Counter()
            for shard in shards(self._groups):
                for each, count in shard.classic.counts().items():
                    self._counts[each.value] += count
        return self._counts[state]


def partitions(groups: GroupCoordinator) -> Labelled:
    return [({"state": state}, count) for state, count in groups.partitions_by_state().items()]


def by_protocol(groups: GroupCoordinator) -> Labelled:
    yield {"protocol": "classic"}, classic_count(groups)
    yield {"protocol": "consumer"}, sum(len(shard.consumer.state.groups) for shard in shards(groups))
    yield {"protocol": "share"}, sum(shard.share.group_count for shard in shards(groups))
    yield {"protocol": "streams"}, sum(shard.streams.group_count for shard in shards(groups))


def consumer_states(groups: GroupCoordinator) -> Labelled:
    found: Counter[str] = Counter()
    for shard in shards(groups):
        for state, count in shard.consumer.counts().items():
            found[state.value] += count
    return [({"state": state}, found[state]) for state in CONSUMER_STATES]


def share_states(groups: GroupCoordinator) -> Labelled:
    found: Counter[str] = Counter()
    for shard in shards(groups):
        for state, count in shard.share.counts().items():
            found[state.value] += count
    return [({"state": state}, found[state]) for state in SHARE_STATES]


def streams_states(groups: GroupCoordinator) -> Labelled:
    found: Counter[str] = Counter()
    for shard in shards(groups):
        for state, count in shard.streams.counts().items():
            found[state.value] += count
    return [({"state": state}, found[state]) for state in STREAMS_STATES]
