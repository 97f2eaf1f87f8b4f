"""The share coordinator's settings, typed, from a node's settings.

In: values by name (`BrokerSettings` or any mapping). Out: one frozen value, cheap to read in decisions.
Does not know: where values come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


class Values(Protocol):
    def __getitem__(self, name: str, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class ShareStateSettings:
    """The defaults are Kafka's."""

    updates_per_snapshot: int = 500
    cold_snapshot_interval_ms: int = 300_000
    prune_interval_ms: int = 300_000

    @classmethod
    def of(cls, values: Values) -> ShareStateSettings:
        """The settings of a node, as `BrokerSettings` holds them."""
        return cls(
            updates_per_snapshot=values["share.coordinator.snapshot.update.records.per.snapshot"],
            cold_snapshot_interval_ms=values["share.coordinator.cold.partition.snapshot.interval.ms"],
            prune_interval_ms=values["share.coordinator.state.topic.prune.interval.ms"],
        )
