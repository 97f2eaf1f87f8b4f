"""Topics by name and by id, with their partitions; and the changes that a delta makes to them.

In: TopicRecord, RemoveTopicRecord, PartitionRecord, PartitionChangeRecord, ClearElrRecord. Out: a new image,
and which topics were created, deleted or changed, and which of their partitions.
Does not know: configurations, brokers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.metadata.changes import COPIED_MAX, MapChanges, OverlaidMap
from barnabas.metadata.partitions import PartitionRegistration, registration
from barnabas.protocol.log_records.metadata import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)


@dataclass(frozen=True, slots=True)
class TopicImage:
    name: str
    id: bytes
    partitions: Mapping[int, PartitionRegistration]


@dataclass(frozen=True, slots=True)
class TopicsImage:
    by_id: Mapping[bytes, TopicImage] = field(default_factory=dict)
    by_name: Mapping[str, TopicImage] = field(default_factory=dict)

    def partition(self, name: str, partition: int) -> PartitionRegistration | None:
        topic = self.by_name.get(name)
        return topic.partitions.get(partition) if topic is not None else None

    @property
    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.by_id.values())


class TopicDelta:
    """The changes of one topic: it is new, or some of its partitions changed."""

    __slots__ = ("changed", "has_other_replicas", "id", "name", "previous")

    def __init__(self, name: str, topic_id: bytes, previous: TopicImage | None) -> None:
        self.has_other_replicas = False  # some partition is new, or a record gave it replicas
        self.name = name
        self.id = topic_id
        self.previous = previous  # None for a topic that this delta creates
        self.changed: dict[int, PartitionRegistration] = {}

    def partition(self, partition: int) -> PartitionRegistration | None:
        found = self.changed.get(partition)
        if found is None and self.previous is not None:
            found = self.previous.partitions.get(partition)
        return found

    def put(self, number: int, partition: PartitionRegistration) -> None:
        before = self.partition(number)
        if before is None or before.replicas != partition.replicas:
            self.has_other_replicas = True
        self.changed[number] = partition

    def apply(self) -> TopicImage:
        if self.previous is None:
            return TopicImage(self.name, self.id, self.changed)
        before = self.previous.partitions
        if len(before) > COPIED_MAX:
            return TopicImage(self.name, self.id, OverlaidMap.of(before, self.changed))
        return TopicImage(self.name, self.id, {**before, **self.changed})


class TopicsDelta:
    """Changes to the topics; `changed` and `deleted` are what a listener looks at."""

    __slots__ = ("changed", "deleted", "image")

    def __init__(self, image: TopicsImage) -> None:
        self.image = image
        self.changed: dict[bytes, TopicDelta] = {}  # created topics too
        self.deleted: dict[bytes, TopicImage] = {}  # topics of the image that were deleted

    @property
    def created(self) -> list[TopicDelta]:
        return [topic for topic in self.changed.values() if topic.previous is None]

    def _topic(self, topic_id: bytes) -> TopicDelta:
        topic = self.changed.get(topic_id)
        if topic is None:
            previous = self.image.by_id.get(topic_id)
            if previous is None or topic_id in self.deleted:
                raise ValueError(f"no topic has the id {topic_id.hex()}")
            topic = self.changed[topic_id] = TopicDelta(previous.name, topic_id, previous)
        return topic

    def replay_topic(self, record: TopicRecord) -> None:
        self.changed[record.topic_id] = TopicDelta(record.name, record.topic_id, None)

    def replay_partition(self, record: PartitionRecord) -> None:
        self._topic(record.topic_id).put(record.partition_id, registration(record))

    def replay_partition_change(self, record: PartitionChangeRecord) -> None:
        topic = self._topic(record.topic_id)
        before = topic.partition(record.partition_id)
        if before is None:
            raise ValueError(f"topic {topic.name} has no partition {record.partition_id} to change")
        topic.changed[record.partition_id] = before.merge(record)
        if record.replicas is not None:
            topic.has_other_replicas = True

    def replay_remove_topic(self, record: RemoveTopicRecord) -> str:
        """Remove a topic and return its name, because its configuration is removed with it."""
        topic = self._topic(record.topic_id)
        del self.changed[record.topic_id]
        if topic.previous is not None:
            self.deleted[record.topic_id] = topic.previous
        return topic.name

    def replay_clear_elr(self, record: ClearElrRecord) -> None:
        """Clear eligible leader replicas, of one topic or, with an empty name, of all."""
        for topic in self.apply().by_id.values():
            if record.topic_name not in ("", topic.name):
                continue
            for number, partition in topic.partitions.items():
                if partition.elr or partition.last_known_elr:
                    cleared = partition._replace(elr=(), last_known_elr=())
                    self._topic(topic.id).changed[number] = cleared

    def apply(self) -> TopicsImage:
        if not self.changed and not self.deleted:
            return self.image
        by_id = MapChanges(self.image.by_id)
        by_name = MapChanges(self.image.by_name)
        for deleted in self.deleted.values():
            by_id.remove(deleted.id)
            by_name.remove(deleted.name)
        for changed in self.changed.values():
            topic = changed.apply()
            by_id.set(topic.id, topic)
            by_name.set(topic.name, topic)
        return TopicsImage(by_id.apply(), by_name.apply())
