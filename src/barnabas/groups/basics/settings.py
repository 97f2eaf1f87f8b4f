"""The group coordinator's settings, typed, from a node's settings.

In: values by name (`BrokerSettings` or any mapping). Out: one frozen value, cheap to read in decisions.
Does not know: where values come from, settings of single groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

MS_PER_MINUTE = 60_000


class Values(Protocol):
    def __getitem__(self, name: str, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The defaults are Kafka's."""

    # Classic groups
    initial_rebalance_delay_ms: int = 3000
    session_timeout_ms_min: int = 6000
    session_timeout_ms_max: int = 1_800_000
    group_size_max: int = 2**31 - 1
    new_member_join_timeout_ms: int = 300_000  # fixed in Kafka too
    record_bytes_max: int = 1_048_588  # of one record, or of all records of one request

    # Offsets
    offset_metadata_bytes_max: int = 4096
    offsets_retention_ms: int = 10_080 * MS_PER_MINUTE
    offsets_retention_check_interval_ms: int = 600_000

    # Consumer groups
    rebalance_protocols: tuple[str, ...] = ("classic", "consumer", "streams")
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_assignment_interval_ms: int = 1000
    consumer_assignment_interval_ms_min: int = 0
    consumer_assignment_interval_ms_max: int = 15_000
    consumer_heartbeat_interval_ms: int = 5000
    consumer_heartbeat_interval_ms_min: int = 5000
    consumer_heartbeat_interval_ms_max: int = 15_000
    consumer_session_timeout_ms: int = 45_000
    consumer_session_timeout_ms_min: int = 45_000
    consumer_session_timeout_ms_max: int = 60_000
    consumer_group_size_max: int = 2**31 - 1
    consumer_migration_policy: str = "bidirectional"  # in lower case
    consumer_regex_refresh_interval_ms: int = 600_000

    # Share groups
    share_assignment_interval_ms: int = 1000
    share_assignment_interval_ms_min: int = 0
    share_assignment_interval_ms_max: int = 15_000
    share_heartbeat_interval_ms: int = 5000
    share_heartbeat_interval_ms_min: int = 5000
    share_heartbeat_interval_ms_max: int = 15_000
    share_session_timeout_ms: int = 45_000
    share_session_timeout_ms_min: int = 45_000
    share_session_timeout_ms_max: int = 60_000
    share_group_size_max: int = 200
    share_initialize_retry_interval_ms: int = 30_000
    # Streams groups
    streams_assignment_interval_ms: int = 1000
    streams_assignment_interval_ms_min: int = 0
    streams_assignment_interval_ms_max: int = 15_000
    streams_heartbeat_interval_ms: int = 5000
    streams_heartbeat_interval_ms_min: int = 5000
    streams_heartbeat_interval_ms_max: int = 15_000
    streams_session_timeout_ms: int = 45_000
    streams_session_timeout_ms_min: int = 45_000
    streams_session_timeout_ms_max: int = 60_000
    streams_initial_rebalance_delay_ms: int = 3000
    streams_standby_count: int = 0
    streams_standby_count_max: int = 2
    streams_group_size_max: int = 2**31 - 1

    @classmethod
    def of(cls, values: Values) -> GroupSettings:
        """The settings of a node, as `BrokerSettings` holds them."""
        return cls(
            initial_rebalance_delay_ms=values["group.initial.rebalance.delay.ms"],
            session_timeout_ms_min=values["group.min.session.timeout.ms"],
            session_timeout_ms_max=values["group.max.session.timeout.ms"],
            group_size_max=values["group.max.size"],
            record_bytes_max=values["message.max.bytes"],
            offset_metadata_bytes_max=values["offset.metadata.max.bytes"],
            offsets_retention_ms=values["offsets.retention.minutes"] * MS_PER_MINUTE,
            offsets_retention_check_interval_ms=values["offsets.retention.check.interval.ms"],
            rebalance_protocols=tuple(values["group.coordinator.rebalance.protocols"]),
            consumer_assignors=tuple(values["group.consumer.assignors"]),
            consumer_assignment_interval_ms=values["group.consumer.assignment.interval.ms"],
            consumer_assignment_interval_ms_min=values["group.consumer.min.assignment.interval.ms"],
            consumer_assignment_interval_ms_max=values["group.consumer.max.assignment.interval.ms"],
            consumer_heartbeat_interval_ms=values["group.consumer.heartbeat.interval.ms"],
            consumer_heartbeat_interval_ms_min=values["group.consumer.min.heartbeat.interval.ms"],
            consumer_heartbeat_interval_ms_max=values["group.consumer.max.heartbeat.interval.ms"],
            consumer_session_timeout_ms=values["group.consumer.session.timeout.ms"],
            consumer_session_timeout_ms_min=values["group.consumer.min.session.timeout.ms"],
            consumer_session_timeout_ms_max=values["group.consumer.max.session.timeout.ms"],
            consumer_group_size_max=values["group.consumer.max.size"],
            consumer_migration_policy=values["group.consumer.migration.policy"].lower(),
            consumer_regex_refresh_interval_ms=values["group.consumer.regex.refresh.interval.ms"],
            share_assignment_interval_ms=values["group.share.assignment.interval.ms"],
            share_assignment_interval_ms_min=values["group.share.min.assignment.interval.ms"],
            share_assignment_interval_ms_max=values["group.share.max.assignment.interval.ms"],
            share_heartbeat_interval_ms=values["group.share.heartbeat.interval.ms"],
            share_heartbeat_interval_ms_min=values["group.share.min.heartbeat.interval.ms"],
            share_heartbeat_interval_ms_max=values["group.share.max.heartbeat.interval.ms"],
            share_session_timeout_ms=values["group.share.session.timeout.ms"],
            share_session_timeout_ms_min=values["group.share.min.session.timeout.ms"],
            share_session_timeout_ms_max=values["group.share.max.session.timeout.ms"],
            share_group_size_max=values["group.share.max.size"],
            share_initialize_retry_interval_ms=values["group.share.initialize.retry.interval.ms"],
            streams_assignment_interval_ms=values["group.streams.assignment.interval.ms"],
            streams_assignment_interval_ms_min=values["group.streams.min.assignment.interval.ms"],
            streams_assignment_interval_ms_max=values["group.streams.max.assignment.interval.ms"],
            streams_heartbeat_interval_ms=values["group.streams.heartbeat.interval.ms"],
            streams_heartbeat_interval_ms_min=values["group.streams.min.heartbeat.interval.ms"],
            streams_heartbeat_interval_ms_max=values["group.streams.max.heartbeat.interval.ms"],
            streams_session_timeout_ms=values["group.streams.session.timeout.ms"],
            streams_session_timeout_ms_min=values["group.streams.min.session.timeout.ms"],
            streams_session_timeout_ms_max=values["group.streams.max.session.timeout.ms"],
            streams_initial_rebalance_delay_ms=values["group.streams.initial.rebalance.delay.ms"],
            streams_standby_count=values["group.streams.num.standby.replicas"],
            streams_standby_count_max=values["group.streams.max.standby.replicas"],
            streams_group_size_max=values["group.streams.max.size"],
        )
