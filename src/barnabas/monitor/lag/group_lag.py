"""Lag of groups as plain values, for tools: each partition with its offsets, its lag and its owner.

In: a `ClusterLag`, or the JSON of the service. Out: `GroupLag`s, those furthest behind first.
Does not know: how they are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.core.topology import TopicPartition
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag.groups import Group
from barnabas.monitor.lag.statuses import time_lag
from barnabas.monitor.lag.topics import UNKNOWN


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """`age_ms` is None where nobody knows it (yet), 0 where nothing is left to read."""

    where: TopicPartition
    current: int | None
    end: int | None
    age_ms: int | None
    member: str | None

    @property
    def lag(self) -> int | None:
        return None if self.current is None or self.end is None else max(0, self.end - self.current)


@dataclass(frozen=True, slots=True)
class GroupLag:
    group_id: str
    state: str
    partitions: tuple[PartitionLag, ...]

    @property
    def lag(self) -> int:
        return sum(each.lag or 0 for each in self.partitions)

    @property
    def age_ms(self) -> int | None:
        """Of the oldest record that the group did not consume."""
        known = [each.age_ms for each in self.partitions if each.age_ms is not None]
        return max(known) if known else None


def lag_of(group: Group, now_ms: int) -> GroupLag:
    partitions = []
    for topic, index, place in group.partitions():
        seconds = time_lag(place, now_ms).seconds
        partitions.append(
            PartitionLag(
                TopicPartition(topic, index),
                known(place.committed),
                known(place.offsets.end),
                None if seconds is None else round(seconds * 1000),
                place.owner.client_id if place.owner is not None else None,
            )
        )
    return GroupLag(group.group_id, group.state, tuple(partitions))


def known(offset: int) -> int | None:
    return None if offset == UNKNOWN else offset


def lags_of(cluster: ClusterLag, now_ms: int, groups: Iterable[str] | None = None) -> list[GroupLag]:
    """The given groups, or all; those furthest behind come first."""
    wanted = cluster.groups if groups is None else dict.fromkeys(groups)
    found = [lag_of(cluster.groups[each], now_ms) for each in wanted if each in cluster.groups]
    return sorted(found, key=lambda group: (-group.lag, group.group_id))


def from_json(group: Mapping[str, Any]) -> GroupLag:
    """A group as the service's own API tells it. KeyError or TypeError if it has another form."""
    return GroupLag(
        group["group"],
        group["state"],
        tuple(
            PartitionLag(
                TopicPartition(each["topic"], each["partition"]),
                each["committed"],
                each["end"],
                None if each["lag_seconds"] is None else round(each["lag_seconds"] * 1000),
                each["client_id"] or None,
            )
            for each in group["partitions"]
        ),
    )
