"""The hash of the topics that a group reads: a changed hash means that a new assignment is due.

In: topic names and a metadata image. Out: Apache Kafka's hash of ids, names, partition counts and racks, so
that a group that moves between the two keeps its epoch. Hashes are cached while a topic does not change.
Does not know: groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack

from barnabas.groups.basics.xxh3 import in_steps
from barnabas.metadata.cluster import ClusterImage
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps, at_once
from barnabas.metadata.topics import TopicImage

MAGIC = b"\x00"  # version of the hashed form
TOPICS_CACHED_MAX = 20_000
PARTITIONS_PER_STEP = 100
EFFORT_PER_TURN = 1_000  # about a millisecond
TOPIC_EFFORT = 10  # of a topic, beside its partitions

Racks = dict[int, str]


class MetadataHashes:
    __slots__ = ("_cluster", "_racks", "_topics")

    def __init__(self) -> None:
        self._cluster: ClusterImage | None = None
        self._racks: Racks = {}
        self._topics: dict[str, tuple[TopicImage, int]] = {}

    def of_group(self, topics: Iterable[str], image: MetadataImage) -> int:
        """The hash of the existing topics among these; 0 if there are none."""
        return at_once(self.of_group_in_steps(topics, image))

    def of_group_in_steps(self, topics: Iterable[str], image: MetadataImage) -> Steps[int]:
        self._update_racks(image.cluster)
        by_name = image.topics.by_name
        hashes = []
        for name in sorted(topics):
            topic = by_name.get(name)
            if topic is not None:
                known = self._topics.get(name)
                hashes.append(known[1] if known and known[0] is topic else (yield from self._of_topic(topic)))
        return (yield from in_steps(pack(f"<{len(hashes)}q", *hashes))) if hashes else 0

    def prepare(self, topics: Iterable[str], image: MetadataImage) -> bool:
        """Hash some topics in advance. Returns whether all are hashed, so that `of_group` is quick."""
        self._update_racks(image.cluster)
        effort = 0
        for name in topics:
            topic = image.topics.by_name.get(name)
            known = self._topics.get(name)
            if topic is None or (known is not None and known[0] is topic):
                continue
            if effort >= EFFORT_PER_TURN:
                return False
            at_once(self._of_topic(topic))
            effort += TOPIC_EFFORT + len(topic.partitions)
        return True

    def racks(self, image: MetadataImage) -> Racks:
        """The racks of the brokers that have one."""
        self._update_racks(image.cluster)
        return self._racks

    def _update_racks(self, cluster: ClusterImage) -> None:
        if cluster is self._cluster:
            return
        self._cluster = cluster
        racks = {broker.id: broker.rack for broker in cluster.brokers.values() if broker.rack is not None}
        if racks != self._racks:
            self._racks = racks
            self._topics.clear()

    def _of_topic(self, topic: TopicImage) -> Steps[int]:
        racks = self._racks
        found = yield from topic_hash(topic, racks)
        if racks is self._racks:
            if len(self._topics) >= TOPICS_CACHED_MAX:
                self._topics.clear()
            self._topics[topic.name] = (topic, found)
        yield
        return found


def topic_hash(topic: TopicImage, racks: Racks) -> Steps[int]:
    # An id is hashed as Java's two longs, the more significant one first, each in little-endian order.
    parts = [MAGIC, topic.id[7::-1], topic.id[:7:-1], text(topic.name), pack("<i", len(topic.partitions))]
    if not racks:
        parts.append(pack(f"<{len(topic.partitions)}i", *range(len(topic.partitions))))
        return (yield from in_steps(b"".join(parts)))
    for number in range(len(topic.partitions)):
        parts.append(pack("<i", number))
        registration = topic.partitions.get(number)
        replicas = registration.replicas if registration is not None else ()
        for rack in sorted(racks[replica] for replica in replicas if replica in racks):
            parts.append(pack("<i", len(rack.encode("utf-16-le")) // 2))
            parts.append(text(rack))
        if number % PARTITIONS_PER_STEP == 0:
            yield
    return (yield from in_steps(b"".join(parts)))


def text(value: str) -> bytes:
    units = value.encode("utf-16-le")
    return units + pack("<i", len(units) // 2)
