"""Settings of share groups that leaders of partitions apply: a group's own, within the limits of the broker.

In: a group id, the metadata image. Out: limits, isolation level, where a group begins to read. Values are
read again when settings change.
Does not know: settings of the group coordinator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.groups.basics.overrides import GroupOverrides, within
from barnabas.shares.partition.limits import ShareLimits

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage
    from barnabas.settings import BrokerSettings

LATEST, EARLIEST = "latest", "earliest"
BY_DURATION = "by_duration:"
READ_COMMITTED = "read_committed"
PARTS_MS = {"D": 86_400_000, "H": 3_600_000, "M": 60_000, "S": 1000}


@dataclass(frozen=True, slots=True)
class ShareGroupSettings:
    limits: ShareLimits
    reads_committed: bool  # `share.isolation.level`
    offset_reset: str  # `share.auto.offset.reset`


class SettingsOfShareGroups:
    __slots__ = ("_broker", "_overrides")

    def __init__(self, broker: BrokerSettings) -> None:
        self._broker = broker
        self._overrides = GroupOverrides(self._read)

    def of(self, group: str, image: MetadataImage) -> ShareGroupSettings:
        return self._overrides.of(group, image)

    def configure(self, broker: BrokerSettings) -> None:
        if broker is not self._broker:
            self._broker = broker
            self._overrides.clear()

    def _read(self, own: Mapping[str, str]) -> ShareGroupSettings:
        return ShareGroupSettings(
            limits=ShareLimits(
                record_locks_max=self._within(own, "partition.max.record.locks"),
                deliveries_max=self._within(own, "delivery.count.limit"),
                lock_duration_ms=self._within(own, "record.lock.duration.ms"),
                may_renew=own.get("share.renew.acknowledge.enable", "true").lower() == "true",
            ),
            reads_committed=own.get("share.isolation.level", "").lower() == READ_COMMITTED,
            offset_reset=own.get("share.auto.offset.reset", LATEST).lower(),
        )

    def _within(self, own: Mapping[str, str], name: str) -> int:
        broker = self._broker
        return within(
            own,
            f"share.{name}",
            broker[f"group.share.{name}"],
            broker[f"group.share.min.{name}"],
            broker[f"group.share.max.{name}"],
        )


def duration_ms(offset_reset: str) -> int:
    """The duration of a `by_duration:PnDTnHnMn.nS` setting."""
    parts = re.findall(r"([0-9.]+)([DHMS])", offset_reset.removeprefix(BY_DURATION).upper())
    return sum(int(float(number) * PARTS_MS[unit]) for number, unit in parts)
