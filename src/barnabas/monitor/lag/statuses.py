"""The status of groups and partitions as values: the judgement, the lag in records and in time.

In: a `ClusterLag`, a group, the time. Out: `GroupStatus`. Partitions of a topic to which the group did not
commit are among them, as in Burrow's API. Does not know: JSON, metrics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from barnabas.metadata.steps import Steps
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag.commit_window import Commit, count_of, newest, oldest
from barnabas.monitor.lag.groups import Group, GroupPartition
from barnabas.monitor.lag.judgement import Status, group_status, judge, judge_by_silence
from barnabas.monitor.lag.offset_times import seconds_behind
from barnabas.monitor.lag.topics import UNKNOWN

PARTITIONS_A_STEP = 50


class Method(StrEnum):
    """How the lag in time is known."""

    EXACT = "exact"  # the timestamp of the first record that is not consumed
    INTERPOLATED = "interpolated"  # when the end of the partition was there
    NONE = "none"


class TimeLag(NamedTuple):
    seconds: float | None
    method: Method


NO_TIME = TimeLag(None, Method.NONE)
NOTHING_BEHIND = TimeLag(0.0, Method.EXACT)


class PartitionStatus(NamedTuple):
    """`start` and `end` are the oldest and the newest commit of the window."""

    topic: str
    partition: int
    owner: str
    client_id: str
    status: Status
    start: Commit | None
    end: Commit | None
    lag: int
    complete: float
    time: TimeLag = NO_TIME


@dataclass(frozen=True, slots=True)
class GroupStatus:
    cluster: str
    group: str
    status: Status
    complete: float
    partitions: tuple[PartitionStatus, ...]
    lag: int

    @property
    def largest(self) -> PartitionStatus | None:
        """The partition that is furthest behind; the first of several."""
        return max(self.partitions, key=lambda each: each.lag, default=None)

    @property
    def seconds(self) -> float | None:
        known = [each.time.seconds for each in self.partitions if each.time.seconds is not None]
        return max(known) if known else None


def time_lag(place: GroupPartition, now_ms: int) -> TimeLag:
    """The age of the oldest record that the group did not consume and that is still there."""
    lag = place.lag
    if lag is None:
        return NO_TIME
    first = place.first_unread
    if lag == 0 or first >= place.offsets.end:
        return NOTHING_BEHIND
    if place.written_offset == first and place.written_ms >= 0:
        return TimeLag(max(0.0, (now_ms - place.written_ms) / 1000), Method.EXACT)
    seconds = seconds_behind(place.offsets.offset_times, first, now_ms)
    return NO_TIME if seconds is None else TimeLag(seconds, Method.INTERPOLATED)


def partition_status(
    cluster: ClusterLag, topic: str, partition: int, place: GroupPartition | None, now_ms: int
) -> PartitionStatus:
    if place is None:
        return PartitionStatus(topic, partition, "", "", Status.OK, None, None, 0, 0.0)
    owner = place.owner
    host, client_id = (owner.host, owner.client_id) if owner is not None else ("", "")
    rules = cluster.rules
    lag = place.lag or 0
    complete = max(count_of(place.window), 1) / rules.intervals
    if not place.window:
        return PartitionStatus(topic, partition, host, client_id, Status.OK, None, None, lag, complete)
    status = Status.OK
    ends, allowed_lag = place.offsets.ends_recent, rules.allowed_lag
    if complete >= rules.minimum_complete:
        status = judge(place.window, ends, lag, now_ms, allowed_lag, rules.silence_ms_min)
    elif rules.silence_ms_max is not None:
        status = judge_by_silence(place.window, ends, lag, now_ms, allowed_lag, rules.silence_ms_max)
    return PartitionStatus(
        topic,
        partition,
        host,
        client_id,
        status,
        oldest(place.window),
        newest(place.window),
        lag,
        complete,
        time_lag(place, now_ms),
    )


def places_of(cluster: ClusterLag, group: Group) -> Iterator[tuple[str, int, GroupPartition | None]]:
    """All partitions of the topics that the group consumes, in their order."""
    for topic in sorted(group.topics):
        places = group.topics[topic]
        known = cluster.topics.get(topic)
        count = max(len(known.partitions) if known is not None else 0, max(places, default=-1) + 1)
        for index in range(count):
            yield topic, index, places.get(index)


def status_of(cluster: ClusterLag, group: Group, now_ms: int) -> Steps[GroupStatus]:
    """Judge a group, in steps: it may have thousands of partitions."""
    found: list[PartitionStatus] = []
    for topic, index, place in list(places_of(cluster, group)):
        found.append(partition_status(cluster, topic, index, place, now_ms))
        if not len(found) % PARTITIONS_A_STEP:
            yield
    filled = sum(1 for each in found if each.complete == 1.0)
    return GroupStatus(
        cluster.name,
        group.group_id,
        group_status(each.status for each in found),
        filled / len(found) if found else 0.0,
        tuple(found),
        sum(each.lag for each in found),
    )


def is_found(cluster: ClusterLag, group: Group | None, now_ms: int) -> bool:
    """Whether Burrow's API knows the group: it committed, and not too long ago."""
    return group is not None and group.last_commit_ms != UNKNOWN and not cluster.is_expired(group, now_ms)
