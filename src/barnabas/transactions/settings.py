"""The transaction coordinator's settings, typed, from a node's settings.

In: values by name (`BrokerSettings` or any mapping). Out: one frozen value, cheap to read in decisions.
Does not know: where values come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


class Values(Protocol):
    def __getitem__(self, name: str, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """The defaults are Kafka's."""

    timeout_ms_max: int = 900_000
    two_phase_commit_enabled: bool = False
    abort_check_interval_ms: int = 10_000
    id_expiration_ms: int = 604_800_000
    id_expiration_check_interval_ms: int = 3_600_000

    @classmethod
    def of(cls, values: Values) -> TransactionSettings:
        """The settings of a node, as `BrokerSettings` holds them."""
        return cls(
            timeout_ms_max=values["transaction.max.timeout.ms"],
            two_phase_commit_enabled=values["transaction.two.phase.commit.enable"],
            abort_check_interval_ms=values["transaction.abort.timed.out.transaction.cleanup.interval.ms"],
            id_expiration_ms=values["transactional.id.expiration.ms"],
            id_expiration_check_interval_ms=values[
                "transaction.remove.expired.transaction.cleanup.interval.ms"
            ],
        )
