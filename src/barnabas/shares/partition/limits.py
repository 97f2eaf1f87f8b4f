"""Limits of a share group that decide what happens to its records: settings of the group, as values."""

from __future__ import annotations

from dataclasses import dataclass

ISOLATED_SINCE = 2  # with fewer deliveries, no record is delivered alone
THROTTLED_DELIVERIES_MIN = 2


@dataclass(frozen=True, slots=True)
class ShareLimits:
    """The defaults are Kafka's."""

    record_locks_max: int = 2000  # `share.partition.max.record.locks`
    deliveries_max: int = 5  # `share.delivery.count.limit`
    lock_duration_ms: int = 30_000  # `share.record.lock.duration.ms`
    may_renew: bool = True  # `share.renew.acknowledge.enable`

    @property
    def throttled_deliveries(self) -> int:
        """From this delivery count on, fewer records of a batch are delivered together, so that one bad
        record does not take the others with it."""
        return max(THROTTLED_DELIVERIES_MIN, -(-self.deliveries_max // 2))

    @property
    def isolates_last(self) -> bool:
        """Whether a record is delivered alone when it is delivered for the last time."""
        return self.deliveries_max > ISOLATED_SINCE
