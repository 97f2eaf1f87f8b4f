"""Feature levels: `metadata.version` and the other features, what each level allows, which record versions it
writes.

In: a level, a record. Out: the version to write the record with; names, ranges and defaults of all features.
The levels are those of Apache Kafka 4.3.
Does not know: which level a cluster has finalized (see `features`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.protocol import Message

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
ELR_VERSION = "eligible.leader.replicas.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"

RELEASES: Mapping[str, int] = {
    "3.3-IV3": 7,
    "3.4-IV0": 8,
    "3.5-IV0": 9,
    "3.5-IV1": 10,
    "3.5-IV2": 11,
    "3.6-IV0": 12,
    "3.6-IV1": 13,
    "3.6-IV2": 14,
    "3.7-IV0": 15,
    "3.7-IV1": 16,
    "3.7-IV2": 17,
    "3.7-IV3": 18,
    "3.7-IV4": 19,
    "3.8-IV0": 20,
    "3.9-IV0": 21,
    "4.0-IV0": 22,
    "4.0-IV1": 23,
    "4.0-IV2": 24,
    "4.0-IV3": 25,
    "4.1-IV0": 26,
    "4.1-IV1": 27,
    "4.2-IV0": 28,
    "4.2-IV1": 29,
    "4.3-IV0": 30,
}
MINIMUM_LEVEL = 7
LATEST_LEVEL = 30

# The level from which each may be written (and the KIP that introduced it).
ZK_MIGRATION = RELEASES["3.4-IV0"]
SCRAM = RELEASES["3.5-IV2"]  # KIP-900
NO_EPOCH_BUMP_ON_ISR_SHRINK = RELEASES["3.6-IV0"]
METADATA_TRANSACTIONS = RELEASES["3.6-IV1"]  # KIP-868
DELEGATION_TOKENS = RELEASES["3.6-IV2"]  # KIP-900
CONTROLLER_REGISTRATION = RELEASES["3.7-IV0"]  # KIP-919
DIRECTORY_ASSIGNMENT = RELEASES["3.7-IV2"]  # KIP-858
ELIGIBLE_LEADER_REPLICAS = RELEASES["4.0-IV1"]  # KIP-966
CORDONED_LOG_DIRS = RELEASES["4.3-IV0"]  # KIP-1066


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature other than `metadata.version`: its highest level, and its default at each metadata level."""

    name: str
    max_level: int
    default_from: tuple[tuple[int, int], ...]  # (metadata level, feature level), ascending

    def default_level(self, metadata_level: int) -> int:
        level = 0
        for since, value in self.default_from:
            if metadata_level >= since:
                level = value
        return level


# In the order in which Kafka's format tool writes them: by name.
FEATURES: Mapping[str, Feature] = {
    feature.name: feature
    for feature in (
        Feature(ELR_VERSION, 1, ((RELEASES["4.1-IV0"], 1),)),
        Feature(GROUP_VERSION, 1, ((RELEASES["4.0-IV0"], 1),)),
        Feature(KRAFT_VERSION, 1, ()),
        Feature(SHARE_VERSION, 1, ((RELEASES["4.2-IV0"], 1),)),
        Feature(STREAMS_VERSION, 1, ((RELEASES["4.2-IV1"], 1),)),
        Feature(TRANSACTION_VERSION, 2, ((RELEASES["4.0-IV2"], 2),)),
    )
}


def supported_features() -> dict[str, tuple[int, int]]:
    """Every feature with the lowest and highest level this software can run with."""
    ranges = {name: (0, feature.max_level) for name, feature in FEATURES.items()}
    return {METADATA_VERSION: (MINIMUM_LEVEL, LATEST_LEVEL), **ranges}


def reason_unsupported(finalized: Mapping[str, int]) -> str | None:
    """Why this version must not join a cluster with these finalized levels; None when it may."""
    supported = supported_features()
    for name, level in finalized.items():
        lowest, highest = supported.get(name, (0, 0))
        if not lowest <= level <= highest:
            return f"the cluster runs with {name} {level}; this version supports {lowest} to {highest}"
    return None


def release_name(level: int) -> str:
    """`4.3-IV0` for 30; the bare number for a level without a name."""
    return next((name for name, number in RELEASES.items() if number == level), str(level))


def release_level(name: str) -> int | None:
    """The level of `4.3-IV0`, or of the last one within a release given as `4.3`; None when unknown."""
    if name in RELEASES:
        return RELEASES[name]
    within = [level for release, level in RELEASES.items() if release.split("-")[0] == name]
    return max(within, default=None)


def record_version(record: Message, level: int) -> int:
    """The version in which a cluster at this `metadata.version` writes the record."""
    choose = _RECORD_VERSIONS.get(type(record).__name__)
    return choose(record, level) if choose is not None else 0


def _register_broker(_: Any, level: int) -> int:
    if level >= CORDONED_LOG_DIRS:
        return 4
    if level >= DIRECTORY_ASSIGNMENT:
        return 3
    return 2 if level >= ZK_MIGRATION else 1


def _partition(_: Any, level: int) -> int:
    if level >= ELIGIBLE_LEADER_REPLICAS:
        return 2
    return 1 if level >= DIRECTORY_ASSIGNMENT else 0


def _registration_change(record: Any, _: int) -> int:
    """The lowest version that can hold the record, as Kafka's controller writes it."""
    if record.cordoned_log_dirs is not None:
        return 3
    if record.log_dirs:
        return 2
    return 1 if record.in_controlled_shutdown else 0


_RECORD_VERSIONS: Mapping[str, Callable[[Any, int], int]] = {
    "RegisterBrokerRecord": _register_broker,
    "PartitionRecord": _partition,
    "PartitionChangeRecord": _partition,
    "BrokerRegistrationChangeRecord": _registration_change,
}
