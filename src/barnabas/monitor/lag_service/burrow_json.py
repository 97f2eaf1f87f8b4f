"""Statuses and commits in the JSON of Burrow's API.

In: values of the lag. Out: objects for JSON in the order of Burrow's fields. The lag in time is added, under
names that Burrow does not have. Does not know: HTTP.
"""

from __future__ import annotations

from struct import pack, unpack
from typing import Any

from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag.commit_window import NO_LAG, Commit, commits, count_of
from barnabas.monitor.lag.groups import Group, GroupPartition
from barnabas.monitor.lag.judgement import Status
from barnabas.monitor.lag.statuses import GroupStatus, PartitionStatus, places_of

Json = dict[str, Any]


def single(value: float) -> float | int:
    """A share as Burrow prints it: the shortest number that is the same in single precision."""
    if value == int(value):
        return int(value)
    bits = pack(">f", value)
    for digits in range(1, 10):
        short = float(f"{value:.{digits}g}")
        if pack(">f", short) == bits:
            return short
    return float(unpack(">f", bits)[0])


def commit_json(commit: Commit | None) -> Json | None:
    if commit is None:
        return None
    return {
        "offset": commit.offset,
        "timestamp": commit.timestamp_ms,
        "observedAt": commit.observed_ms // 1000 * 1000,
        "lag": None if commit.lag == NO_LAG else commit.lag,
    }


def partition_json(status: PartitionStatus) -> Json:
    return {
        "topic": status.topic,
        "partition": status.partition,
        "owner": status.owner,
        "client_id": status.client_id,
        "status": status.status.name,
        "start": commit_json(status.start),
        "end": commit_json(status.end),
        "current_lag": status.lag,
        "complete": single(status.complete),
        "lag_seconds": status.time.seconds,
        "lag_seconds_method": status.time.method.value,
    }


def group_json(status: GroupStatus, *, only_bad: bool) -> Json:
    largest = status.largest
    return {
        "cluster": status.cluster,
        "group": status.group,
        "status": status.status.name,
        "complete": single(status.complete),
        "partitions": [
            partition_json(each) for each in status.partitions if not only_bad or each.status > Status.OK
        ],
        "partition_count": len(status.partitions),
        "maxlag": partition_json(largest) if largest is not None else None,
        "totallag": status.lag,
    }


def not_found_json(cluster: str, group: str) -> Json:
    empty = GroupStatus(cluster, group, Status.NOTFOUND, 1.0, (), 0)
    return group_json(empty, only_bad=False)


def detail_json(cluster: ClusterLag, group: Group) -> Json:
    """The windows of all partitions of the topics that a group consumes."""
    found: Json = {}
    for topic, _, place in places_of(cluster, group):
        found.setdefault(topic, []).append(window_json(place, cluster.rules.intervals))
    return found


def window_json(place: GroupPartition | None, intervals: int) -> Json:
    """Burrow shows slots that are not filled as null, and none at all for a partition without an owner."""
    if place is None:
        return {"offsets": [], "owner": "", "client_id": "", "current-lag": 0}
    filled = [commit_json(each) for each in commits(place.window)]
    return {
        "offsets": [None] * (intervals - count_of(place.window)) + filled,
        "owner": place.owner.host if place.owner is not None else "",
        "client_id": place.owner.client_id if place.owner is not None else "",
        "current-lag": place.lag or 0,
    }
