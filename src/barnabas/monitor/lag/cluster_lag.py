"""All groups and topics of one cluster: what was observed is put in here, and everything is read from here.

In: observations (topics, ends, commits, descriptions of groups), each with its time. Out: groups and topics.
Work over all partitions is written as steps, so that its caller may do other work in between.
Does not know: requests, clocks, how anything is shown.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.metadata.steps import Steps
from barnabas.monitor.lag.commit_window import NO_LAG, Commit, add
from barnabas.monitor.lag.groups import Group, GroupPartition, Member
from barnabas.monitor.lag.topics import UNKNOWN, PartitionOffsets, Placement, Topic

PARTITIONS_A_STEP = 50
GROUPS_MAX = 200_000  # a bound against a cluster that makes a new group for each process start
PARTITION_INDEX_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class LagRules:
    """The first six are Burrow's settings, in its defaults.

    With `silence_ms_min` a partition counts as stopped only after so long without a commit. With
    `silence_ms_max` one with too few commits for a judgement counts as stopped after that."""

    intervals: int = 10
    min_distance_ms: int = 0
    expire_group_ms: int = 604_800_000
    allowed_lag: int = 0
    minimum_complete: float = 0.0
    group_allowed: re.Pattern[str] | None = None
    group_denied: re.Pattern[str] | None = None
    topic_denied: re.Pattern[str] | None = None
    history_points: int = 60
    silence_ms_min: int = 0
    silence_ms_max: int | None = None


@dataclass(frozen=True, slots=True)
class Broker:
    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """A group as its coordinator describes it; `assignment` says which member has a partition."""

    group_id: str
    kind: str
    state: str
    protocol_type: str
    protocol: str
    coordinator: int
    members: tuple[Member, ...]
    assignment: Mapping[tuple[str, int], Member] = field(default_factory=dict)


class ClusterLag:
    def __init__(self, name: str, rules: LagRules | None = None) -> None:
        self.name = name
        self.rules = rules or LagRules()
        self.groups: dict[str, Group] = {}
        self.topics: dict[str, Topic] = {}
        self.brokers: tuple[Broker, ...] = ()
        self.cluster_id = ""
        self.controller_id = UNKNOWN
        self.sampled_ms = array("q")  # the times of the history's samples, the newest last
        self.groups_refused = 0  # beyond GROUPS_MAX

    # Topics

    def set_topics(self, found: Mapping[str, tuple[Sequence[Placement], bool]]) -> None:
        """Learn all topics of the cluster: the placement of each partition, and whether the topic is
        internal. Topics that are gone are removed, and what groups committed to them."""
        for name, (placements, is_internal) in found.items():
            topic = self.topics.get(name)
            if topic is None:
                topic = self.topics[name] = Topic(name)
            topic.is_known, topic.is_internal = True, is_internal
            del topic.partitions[len(placements) :]
            for index, placement in enumerate(placements):
                topic.partition(index).placement = placement
        for name in [each for each in self.topics if each not in found]:
            topic = self.topics[name]
            if topic.is_known or topic.is_old:
                self.remove_topic(name)
            else:  # a commit named it a moment ago: the metadata may be older than that
                topic.is_old = True

    def remove_topic(self, name: str) -> None:
        self.topics.pop(name, None)
        for group_id in [each.group_id for each in self.groups.values() if name in each.topics]:
            self.remove_commits(group_id, name)

    def set_end(self, topic: str, partition: int, end: int, now_ms: int) -> None:
        place = self._offsets(topic, partition)
        if place is not None:
            place.set_end(end, now_ms, self.rules.intervals)

    def set_start(self, topic: str, partition: int, start: int) -> None:
        place = self._offsets(topic, partition)
        if place is not None:
            place.start = start

    def ensure_partition(self, topic: str, partition: int) -> None:
        """Know a partition before the metadata tells it."""
        if topic not in self.topics:
            self.topics[topic] = Topic(topic)
        self.topics[topic].partition(partition)

    def _offsets(self, topic: str, partition: int) -> PartitionOffsets | None:
        known = self.topics.get(topic)
        if known is None or not 0 <= partition < len(known.partitions):
            return None
        return known.partitions[partition]

    def shows_topic(self, topic: str) -> bool:
        denied = self.rules.topic_denied
        return denied is None or denied.search(topic) is None

    # Groups

    def admits(self, group_id: str) -> bool:
        """Whether the rules let this group be watched."""
        rules = self.rules
        if rules.group_allowed is not None and rules.group_allowed.search(group_id) is None:
            return False
        return rules.group_denied is None or rules.group_denied.search(group_id) is None

    def group(self, group_id: str) -> Group | None:
        """The group of this id, made if it is new; None if it is not watched."""
        found = self.groups.get(group_id)
        if found is None and self.admits(group_id):
            if len(self.groups) >= GROUPS_MAX:
                self.groups_refused += 1
                return None
            found = self.groups[group_id] = Group(group_id)
        return found

    def place(self, group_id: str, topic: str, partition: int) -> GroupPartition | None:
        """The history of a group on a partition, made if it is new; None if the group is not watched."""
        if not 0 <= partition < PARTITION_INDEX_MAX:
            return None
        group = self.group(group_id)
        if group is None:
            return None
        places = group.topics.setdefault(topic, {})
        found = places.get(partition)
        if found is None:
            self.ensure_partition(topic, partition)
            found = places[partition] = GroupPartition(group, self.topics[topic].partition(partition))
        return found

    def commit(
        self, place: GroupPartition, offset: int, timestamp_ms: int, observed_ms: int, order: int
    ) -> None:
        """A group committed an offset. `order` sorts the commits of one group."""
        rules = self.rules
        if timestamp_ms < observed_ms - rules.expire_group_ms:
            return
        end = place.offsets.end
        lag = NO_LAG if end == UNKNOWN else max(0, end - offset)
        place.commit_count += 1
        commit = Commit(offset, timestamp_ms, observed_ms, lag, order)
        if add(place.window, commit, rules.intervals, rules.min_distance_ms):
            place.group.last_commit_ms = timestamp_ms

    def describe(self, info: GroupInfo) -> None:
        """Learn the members of a group, and who has which partition."""
        group = self.group(info.group_id)
        if group is None:
            return
        group.kind, group.state = info.kind, info.state
        group.protocol_type, group.protocol = info.protocol_type, info.protocol
        group.coordinator, group.members = info.coordinator, info.members
        for topic, index, place in group.partitions():
            place.owner = info.assignment.get((topic, index))
        for (topic, index), member in info.assignment.items():
            owned = self.place(info.group_id, topic, index)
            if owned is not None:
                owned.owner = member

    def remove_group(self, group_id: str) -> bool:
        """Forget a group. It comes back with its next commit."""
        group = self.groups.pop(group_id, None)
        if group is None:
            return False
        for _, _, place in group.partitions():
            place.is_gone = True
        return True

    def remove_commits(self, group_id: str, topic: str, partition: int | None = None) -> None:
        """Forget what a group committed to a topic, or to one partition; a group without any is forgotten if
        it has no members."""
        group = self.groups.get(group_id)
        if group is None:
            return
        places = group.topics.get(topic, {})
        for index in [each for each in places if partition in (None, each)]:
            places.pop(index).is_gone = True
        if not places:
            group.topics.pop(topic, None)
        if not group.topics and not group.members:
            self.remove_group(group_id)

    def retain_groups(self, present: Iterable[str]) -> None:
        """Forget groups that the cluster does not know any more."""
        known = set(present)
        for group_id in [each for each in self.groups if each not in known]:
            self.remove_group(group_id)

    def is_expired(self, group: Group, now_ms: int) -> bool:
        """Whether the group did not commit for so long that Burrow's API does not know it any more."""
        return group.last_commit_ms < now_ms - self.rules.expire_group_ms

    def expire(self, now_ms: int) -> None:
        """Forget groups that committed once, and not for long. Others exist as long as the cluster has
        them."""
        for group in list(self.groups.values()):
            has_committed = group.last_commit_ms != UNKNOWN
            if has_committed and self.is_expired(group, now_ms) and not group.members:
                self.remove_group(group.group_id)

    # History

    def sample(self, now_ms: int) -> Steps[None]:
        """Append the offsets of all partitions to the history. Between steps, the newest sample of some
        partitions stands one place too early, which moves a forecast by less than a sample."""
        points_max = self.rules.history_points
        done = 0
        for topic in list(self.topics.values()):
            for offsets in topic.partitions:
                append(offsets.ends_seen, offsets.end, points_max)
                append(offsets.starts_seen, offsets.start, points_max)
                if not (done := done + 1) % PARTITIONS_A_STEP:
                    yield
        for group in list(self.groups.values()):
            for places in list(group.topics.values()):
                for place in list(places.values()):
                    append(place.committed_seen, place.committed, points_max)
                    if not (done := done + 1) % PARTITIONS_A_STEP:
                        yield
        append(self.sampled_ms, now_ms, points_max)


def append(series: array[int], value: int, points_max: int) -> None:
    """Append to a series whose newest value belongs to the newest sample."""
    if len(series) >= points_max:
        del series[: len(series) - points_max + 1]
    series.append(value)
