"""The hash that a group keeps of the topics it reads: another hash means another assignment is due.

In: topic names and a metadata image. Out: Apache Kafka's hash of ids, names, numbers of partitions and racks,
so that a group that moves between the two keeps its epoch. Hashes are kept while the topic stays as it is.
Does not know: groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack

from barnabas.groups.consumer.xxh3 import xxh3_64
from barnabas.metadata.cluster import ClusterImage
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import TopicImage

MAGIC = b"\x00"  # version of the form that is hashed
TOPICS_CACHED_MAX = 20_000

Racks = dict[int, str]


class MetadataHashes:
    __slots__ = ("_cluster", "_racks", "_topics")

    def __init__(self) -> None:
        self._cluster: ClusterImage | None = None
        self._racks: Racks = {}
        self._topics: dict[str, tuple[TopicImage, int]] = {}

    def of_group(self, topics: Iterable[str], image: MetadataImage) -> int:
        """The hash of those topics that exist; 0 without any."""
        self._follow(image.cluster)
        by_name = image.topics.by_name
        hashes = [self._of_topic(by_name[name]) for name in sorted(topics) if name in by_name]
        return xxh3_64(pack(f"<{len(hashes)}q", *hashes)) if hashes else 0

    def racks(self, image: MetadataImage) -> Racks:
        """Racks of the brokers that have one."""
        self._follow(image.cluster)
        return self._racks

    def _follow(self, cluster: ClusterImage) -> None:
        if cluster is self._cluster:
            return
        self._cluster = cluster
        racks = {broker.id: broker.rack for broker in cluster.brokers.values() if broker.rack is not None}
        if racks != self._racks:
            self._racks = racks
            self._topics.clear()

    def _of_topic(self, topic: TopicImage) -> int:
        known = self._topics.get(topic.name)
        if known is not None and known[0] is topic:
            return known[1]
        if len(self._topics) >= TOPICS_CACHED_MAX:
            self._topics.clear()
        found = topic_hash(topic, self._racks)
        self._topics[topic.name] = (topic, found)
        return found


def topic_hash(topic: TopicImage, racks: Racks) -> int:
    # An id is hashed as Java's two numbers, the more significant one first, each from its lowest byte.
    parts = [MAGIC, topic.id[7::-1], topic.id[:7:-1], text(topic.name), pack("<i", len(topic.partitions))]
    for number in range(len(topic.partitions)):
        parts.append(pack("<i", number))
        registration = topic.partitions.get(number)
        replicas = registration.replicas if registration is not None else ()
        for rack in sorted(racks[replica] for replica in replicas if replica in racks):
            parts.append(pack("<i", len(rack.encode("utf-16-le")) // 2))
            parts.append(text(rack))
    return xxh3_64(b"".join(parts))


def text(value: str) -> bytes:
    units = value.encode("utf-16-le")
    return units + pack("<i", len(units) // 2)
