"""The cluster as clients of one listener see it: its nodes and their addresses.

In: the metadata image. Out: nodes with their address on the client's listener.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partitions import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, PartitionRegistration

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


class BrokerAddress(NamedTuple):
    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool


def is_registered(image: MetadataImage, broker_id: int, epoch: int) -> bool:
    """Whether the metadata have the registration that gave this epoch to the broker."""
    found = image.cluster.brokers.get(broker_id)
    return found is not None and found.epoch == epoch


def brokers(image: MetadataImage, listener: str, *, with_fenced: bool = False) -> list[BrokerAddress]:
    """Brokers with this listener; fenced ones only with `with_fenced`."""
    return [
        BrokerAddress(broker.id, at.host, at.port, broker.rack, broker.fenced)
        for broker in image.cluster.brokers.values()
        if (at := broker.listeners.get(listener)) is not None and (with_fenced or not broker.fenced)
    ]


def controllers(image: MetadataImage, listener: str) -> list[BrokerAddress]:
    return [
        BrokerAddress(controller.id, at.host, at.port, None, False)
        for controller in image.cluster.controllers.values()
        if (at := controller.listeners.get(listener)) is not None
    ]


def offline_replicas(image: MetadataImage, partition: PartitionRegistration) -> list[int]:
    """Replicas on fenced or missing brokers, or in an offline log dir."""
    alive = image.cluster.brokers
    offline = []
    for replica, directory in zip(partition.replicas, partition.directories, strict=True):
        broker = alive.get(replica)
        if broker is None or broker.fenced or not has_directory(broker.log_dirs, directory):
            offline.append(replica)
    return offline


def has_directory(log_dirs: tuple[bytes, ...], directory: bytes) -> bool:
    """Whether a directory id is one of the broker's, or a reserved id that means no failure."""
    return not log_dirs or directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY) or directory in log_dirs
