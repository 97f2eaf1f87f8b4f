"""Partitions of a share group that have state with the share coordinator, or are about to.

    (unknown) ──► initializing ──► initialized ──► deleting ──► (unknown)

Only initialized partitions are assigned to members. A topic is deleting until the share coordinator has
deleted its state, for the whole group or after DeleteShareGroupOffsets.
In: topics and partitions. Out: new values, since a value never changes. Does not know: the share coordinator.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from barnabas.metadata.topics import TopicsImage

UNKNOWN_TOPIC = "<UNKNOWN>"  # the name of a deleted topic in records

Partitions = Mapping[bytes, frozenset[int]]
"""Partitions by topic id."""


@dataclass(frozen=True, slots=True)
class TopicState:
    """Partitions of a topic that are in one state. The name is that at the time of the record."""

    name: str
    partitions: frozenset[int]


Topics = Mapping[bytes, TopicState]


@dataclass(frozen=True, slots=True)
class StatePartitions:
    initializing: Topics = field(default_factory=dict)
    initialized: Topics = field(default_factory=dict)
    deleting: frozenset[bytes] = frozenset()

    def topic_ids(self) -> set[bytes]:
        return {*self.initializing, *self.initialized, *self.deleting}

    def initialized_partitions(self) -> Partitions:
        return {topic_id: topic.partitions for topic_id, topic in self.initialized.items()}

    def with_initializing(self, topics: Topics) -> StatePartitions:
        """Begin to initialize partitions. A topic that was deleting is wanted again."""
        initializing = combined(self.initializing, topics)
        return StatePartitions(initializing, self.initialized, self.deleting.difference(initializing))

    def with_initialized(self, topics: Topics) -> StatePartitions:
        """The share coordinator has the state of these partitions."""
        return StatePartitions(
            without(self.initializing, partitions_of(topics)),
            combined(self.initialized, topics),
            self.deleting,
        )

    def without_initializing(self, partitions: Partitions) -> StatePartitions:
        """The share coordinator could not initialize these partitions."""
        return StatePartitions(without(self.initializing, partitions), self.initialized, self.deleting)

    def with_deleting(self, topic_ids: Collection[bytes]) -> StatePartitions:
        """Begin to delete the state of initialized topics."""
        initialized = {id: topic for id, topic in self.initialized.items() if id not in topic_ids}
        return StatePartitions(self.initializing, initialized, self.deleting.union(topic_ids))

    def without_deleting(self, topic_ids: Iterable[bytes]) -> StatePartitions:
        """The share coordinator has deleted the state of these topics."""
        return StatePartitions(self.initializing, self.initialized, self.deleting.difference(topic_ids))

    def without_topics(self, topic_ids: Collection[bytes]) -> StatePartitions:
        """The topics were deleted, and the share coordinators have deleted their state on their own."""
        return StatePartitions(
            {id: topic for id, topic in self.initializing.items() if id not in topic_ids},
            {id: topic for id, topic in self.initialized.items() if id not in topic_ids},
            self.deleting.difference(topic_ids),
        )

    def to_delete(self, topics: TopicsImage) -> Topics:
        """All partitions that have state or may have it, also those of a deletion that failed earlier."""
        found = combined(self.initialized, self.initializing)
        again = {
            id: TopicState(topics.by_id[id].name, frozenset(range(len(topics.by_id[id].partitions))))
            for id in self.deleting
            if id in topics.by_id
        }
        return combined(found, again) if again else found


NO_STATE = StatePartitions()


def combined(first: Topics, second: Topics) -> dict[bytes, TopicState]:
    """All partitions of both; names of the second count."""
    found = dict(first)
    for topic_id, topic in second.items():
        known = found.get(topic_id)
        if known is not None:
            topic = TopicState(topic.name, known.partitions | topic.partitions)
        found[topic_id] = topic
    return found


def without(topics: Topics, partitions: Partitions) -> dict[bytes, TopicState]:
    found = {}
    for topic_id, topic in topics.items():
        left = topic.partitions.difference(partitions.get(topic_id, ()))
        if left:
            found[topic_id] = topic if len(left) == len(topic.partitions) else TopicState(topic.name, left)
    return found


def partitions_of(topics: Topics) -> Partitions:
    return {topic_id: topic.partitions for topic_id, topic in topics.items()}


def named(partitions: Partitions, topics: TopicsImage) -> dict[bytes, TopicState]:
    """Partitions with the current names of their topics."""
    return {id: TopicState(topic_name(id, topics), numbers) for id, numbers in partitions.items()}


def topic_name(topic_id: bytes, topics: TopicsImage) -> str:
    topic = topics.by_id.get(topic_id)
    return UNKNOWN_TOPIC if topic is None else topic.name
