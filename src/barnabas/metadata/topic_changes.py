"""The topic changes that concern coordinators: created, deleted, or with other partitions or replicas.

In: a delta of topics. Out: names. Changes of leaders and in-sync replicas are frequent and do not concern
groups, so they are left out.
Does not know: who reads the topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.metadata.topics import TopicsDelta


@dataclass(frozen=True, slots=True)
class TopicChanges:
    created: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()  # more partitions, or other replicas (racks)
    deleted: Mapping[str, bytes] = field(default_factory=dict)  # name -> topic id

    def __bool__(self) -> bool:
        return bool(self.created or self.altered or self.deleted)


NO_CHANGES = TopicChanges()


def topic_changes(delta: TopicsDelta) -> TopicChanges:
    """The changes in a delta. A topic that was deleted and created again is in both lists.

    The delta notes other replicas when it replays records: after a node stopped, a third of all partitions
    has a new leader, and comparing their replicas here took 50 ms for 100,000 partitions."""
    created, altered = [], []
    for topic in delta.changed.values():
        if topic.previous is None:
            created.append(topic.name)
        elif topic.has_other_replicas:
            altered.append(topic.name)
    if not created and not altered and not delta.deleted:
        return NO_CHANGES
    deleted = {topic.name: topic.id for topic in delta.deleted.values()}
    return TopicChanges(tuple(created), tuple(altered), deleted)
