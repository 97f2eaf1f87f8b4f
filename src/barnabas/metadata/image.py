"""The whole metadata of a cluster at one offset of its log: immutable, cheap to share and to look up."""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.metadata.cluster import ClusterImage
from barnabas.metadata.configs import ConfigsImage
from barnabas.metadata.features import FeaturesImage
from barnabas.metadata.quotas import QuotasImage
from barnabas.metadata.security import SecurityImage
from barnabas.metadata.topics import TopicsImage


@dataclass(frozen=True, slots=True)
class Provenance:
    """The position of an image in the log: the offset of its last record, and that batch's epoch and time."""

    offset: int = -1
    epoch: int = -1
    timestamp_ms: int = -1


@dataclass(frozen=True, slots=True)
class MetadataImage:
    provenance: Provenance = Provenance()
    features: FeaturesImage = field(default_factory=FeaturesImage)
    cluster: ClusterImage = field(default_factory=ClusterImage)
    topics: TopicsImage = field(default_factory=TopicsImage)
    configs: ConfigsImage = field(default_factory=ConfigsImage)
    quotas: QuotasImage = field(default_factory=QuotasImage)
    next_producer_id: int = 0  # invariant: no producer id at or above it was ever granted
    security: SecurityImage = field(default_factory=SecurityImage)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written yet: a cluster's first record is its `metadata.version`."""
        return not self.features.finalized


EMPTY_IMAGE = MetadataImage()
