"""Forecasts of groups and their partitions, from the history of a cluster.

In: a `ClusterLag`, a group, the time. Out: a `Forecast` for each partition with a commit, and that of the
group. Does not know: how forecasts are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.metadata.steps import Steps
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag.forecast import Forecast, Line, PartitionHistory, forecast, line_through, of_group
from barnabas.monitor.lag.groups import Group, GroupPartition
from barnabas.monitor.lag.statuses import time_lag
from barnabas.monitor.lag.topics import PartitionOffsets


@dataclass(frozen=True, slots=True)
class GroupForecast:
    whole: Forecast | None  # None: the group has no commits
    partitions: tuple[tuple[str, int, Forecast], ...]


class Shared:
    """Shared by the forecasts of one moment: the times of samples, and the line through the ends of a
    partition."""

    def __init__(self, cluster: ClusterLag, now_ms: int) -> None:
        self.now_ms = now_ms
        self.times_ms = [*cluster.sampled_ms, now_ms]
        self._produced: dict[PartitionOffsets, Line | None] = {}

    def produced(self, offsets: PartitionOffsets) -> Line | None:
        if offsets not in self._produced:
            ends = with_present(offsets.ends_seen, offsets.end)
            self._produced[offsets] = line_through(self.times_ms, ends)
        return self._produced[offsets]


def history_of(cluster: ClusterLag, topic: str, place: GroupPartition, shared: Shared) -> PartitionHistory:
    """The samples of a partition, and as the newest one what is known now."""
    known = cluster.topics.get(topic)
    return PartitionHistory(
        shared.times_ms,
        with_present(place.committed_seen, place.committed),
        with_present(place.offsets.ends_seen, place.offsets.end),
        with_present(place.offsets.starts_seen, place.offsets.start),
        time_lag(place, shared.now_ms).seconds,
        retention(known.retention_ms, known.cleanup_policy) if known is not None else None,
        shared.produced(place.offsets),
    )


def with_present(series: Sequence[int], value: int) -> list[int]:
    return [*series, value]


def retention(retention_ms: int | None, cleanup_policy: str | None) -> int | None:
    """A topic that is compacted and not cut deletes no record for its age."""
    if cleanup_policy is not None and "delete" not in cleanup_policy:
        return -1
    return retention_ms


def forecasts_of(
    cluster: ClusterLag, group: Group, now_ms: int, shared: Shared | None = None
) -> Steps[GroupForecast]:
    """`shared` is made once by a caller that asks for many groups."""
    shared = shared or Shared(cluster, now_ms)
    found: list[tuple[str, int, Forecast]] = []
    for topic, index, place in list(group.partitions()):
        if place.window:
            found.append((topic, index, forecast(history_of(cluster, topic, place, shared))))
            yield
    return GroupForecast(of_group(each for _, _, each in found), tuple(found))
