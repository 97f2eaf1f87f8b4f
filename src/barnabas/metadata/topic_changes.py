"""The topic changes that concern coordinators: created, deleted, or with other partitions or replicas.

In: a delta of topics. Out: names. Changes of leaders and in-sync replicas are frequent and do not concern
groups, so they are left out.
Does not know: who reads the topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.metadata.topics import TopicDelta, TopicsDelta


@dataclass(frozen=True, slots=True)
class TopicChanges:
    created: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()  # more partitions, or other replicas (racks)
    deleted: Mapping[str, bytes] = field(default_factory=dict)  # name -> topic id

    def __bool__(self) -> bool:
        return bool(self.created or self.altered or self.deleted)


NO_CHANGES = TopicChanges()


def topic_changes(delta: TopicsDelta) -> TopicChanges:
    """The changes in a delta. A topic that was deleted and created again is in both lists."""
    created, altered = [], []
    for topic in delta.changed.values():
        if topic.previous is None:
            created.append(topic.name)
        elif has_other_replicas(topic):
            altered.append(topic.name)
    if not created and not altered and not delta.deleted:
        return NO_CHANGES
    deleted = {topic.name: topic.id for topic in delta.deleted.values()}
    return TopicChanges(tuple(created), tuple(altered), deleted)


def has_other_replicas(topic: TopicDelta) -> bool:
    assert topic.previous is not None
    before = topic.previous.partitions
    for number, partition in topic.changed.items():
        known = before.get(number)
        if known is None or known.replicas != partition.replicas:
            return True
    return False
