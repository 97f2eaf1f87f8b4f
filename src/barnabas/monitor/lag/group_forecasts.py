"""Forecasts of groups and their partitions, from the history of a cluster.

In: a `ClusterLag`, a group, the time. Out: a `Forecast` for each partition with a commit, and that of the
group. Does not know: how forecasts are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.metadata.steps import Steps
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag.forecast import Forecast, PartitionHistory, forecast, of_group
from barnabas.monitor.lag.groups import Group, GroupPartition
from barnabas.monitor.lag.statuses import time_lag


@dataclass(frozen=True, slots=True)
class GroupForecast:
    whole: Forecast | None  # None: the group has no commits
    partitions: tuple[tuple[str, int, Forecast], ...]


def history_of(cluster: ClusterLag, topic: str, place: GroupPartition, now_ms: int) -> PartitionHistory:
    """The samples of a partition, and as the newest one what is known now."""
    known = cluster.topics.get(topic)
    return PartitionHistory(
        [*cluster.sampled_ms, now_ms],
        with_present(place.committed_seen, place.committed),
        with_present(place.offsets.ends_seen, place.offsets.end),
        with_present(place.offsets.starts_seen, place.offsets.start),
        time_lag(place, now_ms).seconds,
        retention(known.retention_ms, known.cleanup_policy) if known is not None else None,
    )


def with_present(series: Sequence[int], value: int) -> list[int]:
    return [*series, value]


def retention(retention_ms: int | None, cleanup_policy: str | None) -> int | None:
    """A topic that is compacted and not cut deletes no record for its age."""
    if cleanup_policy is not None and "delete" not in cleanup_policy:
        return -1
    return retention_ms


def forecasts_of(cluster: ClusterLag, group: Group, now_ms: int) -> Steps[GroupForecast]:
    found: list[tuple[str, int, Forecast]] = []
    for topic, index, place in list(group.partitions()):
        if place.window:
            found.append((topic, index, forecast(history_of(cluster, topic, place, now_ms))))
            yield
    return GroupForecast(of_group(each for _, _, each in found), tuple(found))
