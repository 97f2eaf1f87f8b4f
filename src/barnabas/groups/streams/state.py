"""Shared by all decisions on a shard's streams groups: the groups, settings, timers, hashes.

In: settings. Out: lookups and timers.
Does not know: requests, records.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from barnabas.groups.basics.metadata_hash import MetadataHashes
from barnabas.groups.basics.overrides import GroupOverrides, within
from barnabas.groups.basics.rebalances import Rebalances
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.basics.subscribers import Subscribers
from barnabas.groups.basics.timers import MemberTimers
from barnabas.groups.streams.configuring import InternalTopic
from barnabas.groups.streams.group import StreamsGroup
from barnabas.metadata.image import MetadataImage

WHOLE_GROUP = ""  # the member of a timer that belongs to no member
NO_LIMIT = 2**31 - 1


class Due(Enum):
    SESSION = "session"
    REBALANCE = "rebalance"  # to revoke tasks in time
    FIRST_ASSIGNMENT = "first assignment"  # of a group that was empty: more members may join until then


class GroupValues(NamedTuple):
    """The settings that a group may override."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int
    initial_rebalance_delay_ms: int
    standby_count: int

    @property
    def assignment_configs(self) -> dict[str, str]:
        """Input of the assignor, as records hold it. A change causes a new assignment."""
        return {"num.standby.replicas": str(self.standby_count)}


class StreamsState:
    __slots__ = (
        "_values",
        "groups",
        "hashes",
        "missing_topics",
        "rebalances",
        "settings",
        "subscribers",
        "timers",
    )

    def __init__(self, settings: GroupSettings) -> None:
        self.settings = settings
        self.groups: dict[str, StreamsGroup] = {}
        self.subscribers: Subscribers[StreamsGroup] = Subscribers()
        self.hashes = MetadataHashes()
        self.timers: MemberTimers[Due] = MemberTimers(Due)
        # By group: the internal topics that its last heartbeat found missing. Not recorded.
        self.missing_topics: dict[str, Mapping[str, InternalTopic]] = {}
        self.rebalances = Rebalances()
        self._values = GroupOverrides(self._read_values)

    def values(self, group_id: str, image: MetadataImage) -> GroupValues:
        return self._values.of(group_id, image)

    def configure(self, settings: GroupSettings) -> None:
        self.settings = settings
        self._values.clear()

    def _read_values(self, own: Mapping[str, str]) -> GroupValues:
        settings = self.settings
        return GroupValues(
            within(
                own,
                "streams.session.timeout.ms",
                settings.streams_session_timeout_ms,
                settings.streams_session_timeout_ms_min,
                settings.streams_session_timeout_ms_max,
            ),
            within(
                own,
                "streams.heartbeat.interval.ms",
                settings.streams_heartbeat_interval_ms,
                settings.streams_heartbeat_interval_ms_min,
                settings.streams_heartbeat_interval_ms_max,
            ),
            within(
                own,
                "streams.assignment.interval.ms",
                settings.streams_assignment_interval_ms,
                settings.streams_assignment_interval_ms_min,
                settings.streams_assignment_interval_ms_max,
            ),
            within(
                own,
                "streams.initial.rebalance.delay.ms",
                settings.streams_initial_rebalance_delay_ms,
                0,
                NO_LIMIT,
            ),
            within(
                own,
                "streams.num.standby.replicas",
                settings.streams_standby_count,
                0,
                settings.streams_standby_count_max,
            ),
        )
