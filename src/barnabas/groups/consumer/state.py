"""What all decisions on a shard's consumer groups share: the groups, settings, timers, hashes.

In: settings, assignors, a source of randomness. Out: lookups, and timers that are set and cancelled by name.
Timers are not recorded: they start anew when a shard is loaded.
Does not know: requests, records.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from barnabas.groups.assignors.registry import select_assignors
from barnabas.groups.assignors.spec import Assignor
from barnabas.groups.basics.deadlines import Deadlines, Timer
from barnabas.groups.basics.member_ids import Rng
from barnabas.groups.basics.outcome import MayDescribe
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.metadata_hash import MetadataHashes
from barnabas.groups.consumer.subscribers import Subscribers
from barnabas.groups.consumer.topic_matches import TopicMatches
from barnabas.metadata.configs import ConfigResource, ConfigsImage, ResourceType
from barnabas.metadata.image import MetadataImage
from barnabas.protocol import ErrorCode, KafkaError

NO_VERSION = -1


class Due(Enum):
    SESSION = "session"
    REBALANCE = "rebalance"  # to revoke partitions in time
    JOIN = "join"  # for a classic member to rejoin in time
    SYNC = "sync"  # for a classic member to fetch its assignment in time
    REGEX = "regex"  # to resolve the group's expressions


class Deadline(NamedTuple):
    due: Due
    group_id: str
    member_id: str


class NamedTimer(Timer):
    """A timer with a name to find it by."""

    __slots__ = ("name",)

    def __init__(self, name: Deadline) -> None:
        super().__init__()
        self.name = name


class Times(NamedTuple):
    """The settings that a group may override."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


class ConsumerState:
    __slots__ = (
        "_configs",
        "_times",
        "assignors",
        "deadlines",
        "default_assignor",
        "groups",
        "hashes",
        "matches",
        "rng",
        "settings",
        "subscribers",
        "timers",
        "topics_version",
        "viewers",
    )

    def __init__(
        self, settings: GroupSettings, rng: Rng, registered: Mapping[str, Assignor] | None = None
    ) -> None:
        self.settings = settings
        self.rng = rng
        self.assignors = select_assignors(settings.consumer_assignors, registered)
        self.default_assignor = next(iter(self.assignors))
        self.groups: dict[str, ConsumerGroup] = {}
        self.subscribers = Subscribers()
        self.hashes = MetadataHashes()
        self.matches = TopicMatches()
        # By group: the topics that the last member with an expression may describe. Not recorded.
        self.viewers: dict[str, MayDescribe] = {}
        self.topics_version = NO_VERSION  # of the metadata that last had new topics
        self.deadlines: Deadlines[NamedTimer] = Deadlines()
        self.timers: dict[Deadline, NamedTimer] = {}
        self._configs: ConfigsImage | None = None
        self._times: dict[str, Times] = {}

    # Groups

    def group(self, group_id: str) -> ConsumerGroup:
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def times(self, group_id: str, image: MetadataImage) -> Times:
        if image.configs is not self._configs:
            self._configs = image.configs
            self._times.clear()
        times = self._times.get(group_id)
        if times is None:
            times = self._times[group_id] = self._read_times(group_id, image.configs)
        return times

    def _read_times(self, group_id: str, configs: ConfigsImage) -> Times:
        settings = self.settings
        own = configs.of(ConfigResource(ResourceType.GROUP, group_id))

        def value(name: str, default: int, least: int, most: int) -> int:
            text = own.get(name)
            return default if text is None else min(max(int(text), least), most)

        return Times(
            value(
                "consumer.session.timeout.ms",
                settings.consumer_session_timeout_ms,
                settings.consumer_session_timeout_ms_min,
                settings.consumer_session_timeout_ms_max,
            ),
            value(
                "consumer.heartbeat.interval.ms",
                settings.consumer_heartbeat_interval_ms,
                settings.consumer_heartbeat_interval_ms_min,
                settings.consumer_heartbeat_interval_ms_max,
            ),
            value(
                "consumer.assignment.interval.ms",
                settings.consumer_assignment_interval_ms,
                settings.consumer_assignment_interval_ms_min,
                settings.consumer_assignment_interval_ms_max,
            ),
        )

    # Timers

    def set_timer(self, due: Due, group_id: str, member_id: str, at_ms: int) -> None:
        deadline = Deadline(due, group_id, member_id)
        timer = self.timers.get(deadline)
        if timer is None:
            timer = self.timers[deadline] = NamedTimer(deadline)
        self.deadlines.set(timer, at_ms)

    def is_set(self, due: Due, group_id: str, member_id: str) -> bool:
        return Deadline(due, group_id, member_id) in self.timers

    def cancel_timer(self, due: Due, group_id: str, member_id: str) -> None:
        timer = self.timers.pop(Deadline(due, group_id, member_id), None)
        if timer is not None:
            timer.cancel()

    def cancel_timers(self, group_id: str, member_id: str) -> None:
        for due in Due:
            self.cancel_timer(due, group_id, member_id)

    def pop_due(self, now_ms: int) -> Deadline | None:
        timer = self.deadlines.pop_due(now_ms)
        if timer is None:
            return None
        self.timers.pop(timer.name, None)
        return timer.name
