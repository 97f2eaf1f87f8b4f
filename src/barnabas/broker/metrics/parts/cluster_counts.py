"""Counts over all partitions of the cluster, made in pieces: a cluster may have a hundred thousand.

In: the metadata image. Out: counts of the newest image that was counted whole; those of a small cluster are
always current. Does not know: names of metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage
    from barnabas.runtime.pieces import Pieces, Steps, Work

PARTITIONS_A_STEP = 500
NO_LEADER = -1


class ClusterCounts(NamedTuple):
    partitions: int = 0
    offline: int = 0  # without a leader
    imbalanced: int = 0  # led by another than the preferred replica


class Counting:
    def __init__(self, image: Callable[[], MetadataImage], pieces: Pieces) -> None:
        self._image = image
        self._pieces = pieces
        self._counted: MetadataImage | None = None
        self._counts = ClusterCounts()
        self._work: Work[None] | None = None

    def counts(self) -> ClusterCounts:
        image = self._image()
        is_stale = self._counted is None or self._counted.topics is not image.topics
        if is_stale and (self._work is None or self._work.is_done):
            self._work = self._pieces.begin(self._count(image))
        return self._counts

    def _count(self, image: MetadataImage) -> Steps[None]:
        partitions = offline = imbalanced = seen = 0
        for topic in image.topics.by_id.values():
            partitions += len(topic.partitions)
            for each in topic.partitions.values():
                if each.leader == NO_LEADER:
                    offline += 1
                elif each.replicas and each.leader != each.replicas[0]:
                    imbalanced += 1
                seen += 1
                if not seen % PARTITIONS_A_STEP:
                    yield
        self._counts = ClusterCounts(partitions, offline, imbalanced)
        self._counted = image
