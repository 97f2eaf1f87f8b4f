"""The first records of a cluster: the feature levels it starts with.

In: a release or level, requested levels by feature name. Out: FeatureLevelRecords for `bootstrap.checkpoint`,
which the first controller copies into the log. Invalid requests raise ValueError with a message for the
operator.
Does not know: files, the quorum (kraft.version lives in the quorum's own records).
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.metadata.versions import (
    FEATURES,
    KRAFT_VERSION,
    LATEST_LEVEL,
    METADATA_VERSION,
    MINIMUM_LEVEL,
    RELEASES,
    release_level,
    release_name,
)
from barnabas.protocol.log_records.metadata import FeatureLevelRecord


def bootstrap_level(release: str | None, features: Mapping[str, int]) -> int:
    """The `metadata.version` to start with: the release's, the requested one, or the latest."""
    if METADATA_VERSION in features:
        if release is not None:
            raise ValueError(
                f"Use --release-version instead of --feature {METADATA_VERSION}=X to avoid ambiguity."
            )
        level = features[METADATA_VERSION]
        if not MINIMUM_LEVEL <= level <= LATEST_LEVEL:
            raise ValueError(
                f"No {METADATA_VERSION} with feature level {level}. Valid feature levels are from "
                f"{MINIMUM_LEVEL} to {LATEST_LEVEL}."
            )
        return level
    if release is None:
        return LATEST_LEVEL
    found = release_level(release)
    if found is None:
        known = ", ".join(RELEASES)
        raise ValueError(f"Unknown {METADATA_VERSION} '{release}'. Supported {METADATA_VERSION} are: {known}")
    return found


def bootstrap_records(level: int, features: Mapping[str, int]) -> list[FeatureLevelRecord]:
    """`metadata.version` first, then every other feature with a level above 0, by name."""
    for name, wanted in features.items():
        if name == METADATA_VERSION:
            continue
        if name not in FEATURES:
            raise ValueError(f"Unsupported feature: {name}. Supported features are: {', '.join(FEATURES)}")
        if not 0 <= wanted <= FEATURES[name].max_level:
            raise ValueError(
                f"No feature:{name} with feature level {wanted}. At {METADATA_VERSION} {release_name(level)} "
                f"its levels are 0 to {FEATURES[name].max_level}."
            )
    records = [FeatureLevelRecord(name=METADATA_VERSION, feature_level=level)]
    for name, feature in FEATURES.items():
        if name == KRAFT_VERSION:
            continue
        chosen = features.get(name, feature.default_level(level))
        if chosen > 0:
            records.append(FeatureLevelRecord(name=name, feature_level=chosen))
    return records
