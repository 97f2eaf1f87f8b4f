"""Finalized feature levels: the versions that the whole cluster has agreed to use.

In: FeatureLevelRecord. Out: levels by name, `metadata.version` among them, which determines the versions of
records.
Does not know: kraft.version, which the quorum keeps in control records of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.metadata.changes import MapChanges
from barnabas.metadata.versions import ELR_VERSION, METADATA_VERSION, MINIMUM_LEVEL
from barnabas.protocol.log_records.metadata import FeatureLevelRecord


@dataclass(frozen=True, slots=True)
class FeaturesImage:
    finalized: Mapping[str, int] = field(default_factory=dict)  # without features of level 0

    @property
    def metadata_level(self) -> int:
        return self.finalized.get(METADATA_VERSION, MINIMUM_LEVEL)

    def level(self, name: str) -> int:
        return self.finalized.get(name, 0)

    @property
    def elr_enabled(self) -> bool:
        return self.level(ELR_VERSION) > 0


class FeaturesDelta:
    __slots__ = ("changes", "image")

    def __init__(self, image: FeaturesImage) -> None:
        self.image = image
        self.changes: MapChanges[str, int] = MapChanges(image.finalized)

    def replay(self, record: FeatureLevelRecord) -> None:
        if record.feature_level == 0:
            self.changes.remove(record.name)
        else:
            self.changes.set(record.name, record.feature_level)

    def apply(self) -> FeaturesImage:
        return FeaturesImage(self.changes.apply())
