"""An index of the groups of a shard by topic, so that a changed topic finds its groups quickly.

In: groups that begin or cease to read topics. Out: the groups of a topic.
Does not know: why a group reads a topic (a name, an expression or a topology), metadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar


class Subscriber(Protocol):
    group_id: str


Group = TypeVar("Group", bound=Subscriber)


class Subscribers(Generic[Group]):
    __slots__ = ("_by_topic",)

    def __init__(self) -> None:
        self._by_topic: dict[str, dict[str, Group]] = {}  # invariant: no inner dict is empty

    def add(self, topic: str, group: Group) -> None:
        self._by_topic.setdefault(topic, {})[group.group_id] = group

    def remove(self, topic: str, group: Group) -> None:
        groups = self._by_topic.get(topic)
        if groups is not None and groups.get(group.group_id) is group:
            del groups[group.group_id]
            if not groups:
                del self._by_topic[topic]

    def of(self, topic: str) -> Iterable[Group]:
        return self._by_topic.get(topic, {}).values()

    def clear(self) -> None:
        self._by_topic.clear()

    def __len__(self) -> int:
        """The number of topics that any group reads."""
        return len(self._by_topic)
