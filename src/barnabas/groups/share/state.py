"""Shared by all decisions on a shard's share groups: the groups, settings, timers, indexes.

In: settings. Out: lookups and timers. When partitions began to be initialized is not recorded: a new
coordinator asks the share coordinator again at once.
Does not know: requests, records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from barnabas.groups.assignors.simple import SimpleAssignor
from barnabas.groups.assignors.spec import Assignor
from barnabas.groups.basics.metadata_hash import MetadataHashes
from barnabas.groups.basics.overrides import GroupOverrides, within
from barnabas.groups.basics.rebalances import Rebalances
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.basics.subscribers import Subscribers
from barnabas.groups.basics.timers import MemberTimers
from barnabas.groups.share.group import ShareGroup
from barnabas.groups.share.state_partitions import NO_STATE, Partitions, StatePartitions
from barnabas.metadata.image import MetadataImage


class Due(Enum):
    SESSION = "session"


class Times(NamedTuple):
    """The settings that a group may override."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


class ShareState:
    __slots__ = (
        "_asked_epochs",
        "_asked_ms",
        "_groups_by_topic",
        "_times",
        "assignor",
        "groups",
        "hashes",
        "rebalances",
        "settings",
        "subscribers",
        "timers",
    )

    def __init__(self, settings: GroupSettings) -> None:
        self.settings = settings
        self.assignor: Assignor = SimpleAssignor()
        self.groups: dict[str, ShareGroup] = {}
        self.subscribers: Subscribers[ShareGroup] = Subscribers()
        self.hashes = MetadataHashes()
        self.timers: MemberTimers[Due] = MemberTimers(Due)
        self.rebalances = Rebalances()
        self._times = GroupOverrides(self._read_times)
        self._groups_by_topic: dict[bytes, dict[str, ShareGroup]] = {}  # groups with state of a topic
        self._asked_ms: dict[tuple[str, bytes], int] = {}  # when the share coordinator was asked
        self._asked_epochs: dict[tuple[str, bytes], dict[int, int]] = {}  # by partition, the newest request

    def configure(self, settings: GroupSettings) -> None:
        self.settings = settings
        self._times.clear()

    def clear(self) -> None:
        self.groups.clear()
        self.subscribers.clear()
        self.timers.clear()
        self._groups_by_topic.clear()
        self._asked_ms.clear()
        self._asked_epochs.clear()

    def times(self, group_id: str, image: MetadataImage) -> Times:
        return self._times.of(group_id, image)

    def _read_times(self, own: Mapping[str, str]) -> Times:
        settings = self.settings
        return Times(
            within(
                own,
                "share.session.timeout.ms",
                settings.share_session_timeout_ms,
                settings.share_session_timeout_ms_min,
                settings.share_session_timeout_ms_max,
            ),
            within(
                own,
                "share.heartbeat.interval.ms",
                settings.share_heartbeat_interval_ms,
                settings.share_heartbeat_interval_ms_min,
                settings.share_heartbeat_interval_ms_max,
            ),
            within(
                own,
                "share.assignment.interval.ms",
                settings.share_assignment_interval_ms,
                settings.share_assignment_interval_ms_min,
                settings.share_assignment_interval_ms_max,
            ),
        )

    # Partitions with state

    def set_states(self, group: ShareGroup, states: StatePartitions | None) -> None:
        before, after = group.states or NO_STATE, states or NO_STATE
        group.states = states
        for topic_id in before.initializing.keys() - after.initializing.keys():
            self._asked_ms.pop((group.group_id, topic_id), None)
            self._asked_epochs.pop((group.group_id, topic_id), None)
        known, wanted = before.topic_ids(), after.topic_ids()
        for topic_id in wanted - known:
            self._groups_by_topic.setdefault(topic_id, {})[group.group_id] = group
        for topic_id in known - wanted:
            groups = self._groups_by_topic[topic_id]
            del groups[group.group_id]
            if not groups:
                del self._groups_by_topic[topic_id]

    def groups_with_state_of(self, topic_ids: Iterable[bytes]) -> list[ShareGroup]:
        found: dict[str, ShareGroup] = {}
        for topic_id in topic_ids:
            found.update(self._groups_by_topic.get(topic_id, {}))
        return list(found.values())

    def note_asked(self, group_id: str, partitions: Partitions, epoch: int, now_ms: int) -> None:
        """Note that share coordinators are asked to initialize these partitions in an epoch of the group."""
        for topic_id, numbers in partitions.items():
            self._asked_ms[group_id, topic_id] = now_ms
            self._asked_epochs.setdefault((group_id, topic_id), {}).update(dict.fromkeys(numbers, epoch))

    def is_superseded(self, group_id: str, topic_id: bytes, partition: int, epoch: int) -> bool:
        """Whether a share coordinator was asked again in a later epoch. That request may still arrive, and it
        resets the state, so the response to the earlier one must not let members read the partition."""
        return self._asked_epochs.get((group_id, topic_id), {}).get(partition, epoch) > epoch

    def was_asked(self, group_id: str, topic_id: bytes, now_ms: int) -> bool:
        """Whether share coordinators were asked lately, so that the response is still to come."""
        asked_ms = self._asked_ms.get((group_id, topic_id))
        return asked_ms is not None and now_ms - asked_ms < self.settings.share_initialize_retry_interval_ms

    def on_clock_set(self, by_ms: int) -> None:
        self.timers.shift(by_ms)
        for key in self._asked_ms:
            self._asked_ms[key] += by_ms
