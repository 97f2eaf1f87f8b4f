"""The cluster as a broker sees it in its metadata."""

from __future__ import annotations

from barnabas.broker.quorum.topology import is_registered
from barnabas.metadata.cluster import BrokerRegistration, ClusterImage
from barnabas.metadata.image import MetadataImage


def image_of(epoch: int) -> MetadataImage:
    return MetadataImage(cluster=ClusterImage({1: BrokerRegistration(1, epoch, bytes(16), {}, {})}))


def test_a_broker_is_registered_when_the_record_with_its_epoch_is_applied() -> None:
    assert not is_registered(MetadataImage(), 1, 9)
    assert not is_registered(image_of(5), 1, 9)  # an earlier life, whose partitions it may seem to lead
    assert is_registered(image_of(9), 1, 9)
    assert not is_registered(image_of(9), 2, 9)
