"""Shared by all decisions on a shard's consumer groups: the groups, settings, timers, hashes.

In: settings, assignors, a source of randomness. Out: lookups and timers.
Does not know: requests, records.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from barnabas.groups.assignors.registry import select_assignors
from barnabas.groups.assignors.spec import Assignor
from barnabas.groups.basics.member_ids import Rng
from barnabas.groups.basics.metadata_hash import MetadataHashes
from barnabas.groups.basics.outcome import MayDescribe
from barnabas.groups.basics.overrides import GroupOverrides, within
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.basics.subscribers import Subscribers
from barnabas.groups.basics.timers import MemberTimers
from barnabas.groups.consumer.describable_topics import DescribableTopics
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.topic_matches import TopicMatches
from barnabas.metadata.image import MetadataImage
from barnabas.protocol import ErrorCode, KafkaError

NO_VERSION = -1


class Due(Enum):
    SESSION = "session"
    REBALANCE = "rebalance"  # to revoke partitions in time
    JOIN = "join"  # for a classic member to rejoin in time
    SYNC = "sync"  # for a classic member to fetch its assignment in time
    REGEX = "regex"  # to resolve the group's expressions


class Times(NamedTuple):
    """The settings that a group may override."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


class ConsumerState:
    __slots__ = (
        "_times",
        "assignors",
        "default_assignor",
        "describable",
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
        self.subscribers: Subscribers[ConsumerGroup] = Subscribers()
        self.hashes = MetadataHashes()
        self.matches = TopicMatches()
        self.describable = DescribableTopics()
        # By group: the topics that the last member with an expression may describe. Not recorded.
        self.viewers: dict[str, MayDescribe] = {}
        self.topics_version = NO_VERSION  # of the metadata that last had new topics
        self.timers: MemberTimers[Due] = MemberTimers(Due)
        self._times = GroupOverrides(self._read_times)

    # Groups

    def group(self, group_id: str) -> ConsumerGroup:
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def times(self, group_id: str, image: MetadataImage) -> Times:
        return self._times.of(group_id, image)

    def _read_times(self, own: Mapping[str, str]) -> Times:
        settings = self.settings
        return Times(
            within(
                own,
                "consumer.session.timeout.ms",
                settings.consumer_session_timeout_ms,
                settings.consumer_session_timeout_ms_min,
                settings.consumer_session_timeout_ms_max,
            ),
            within(
                own,
                "consumer.heartbeat.interval.ms",
                settings.consumer_heartbeat_interval_ms,
                settings.consumer_heartbeat_interval_ms_min,
                settings.consumer_heartbeat_interval_ms_max,
            ),
            within(
                own,
                "consumer.assignment.interval.ms",
                settings.consumer_assignment_interval_ms,
                settings.consumer_assignment_interval_ms_min,
                settings.consumer_assignment_interval_ms_max,
            ),
        )
