"""Removes deleted topics from the partitions of share groups, in turns of bounded work.

In: ids of deleted topics, time. Out: records in outcomes of bounded size. Share coordinators learn of deleted
topics themselves, so nobody is asked.
Does not know: members, requests.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from barnabas.groups.basics.outcome import Outcome
from barnabas.groups.share import entries
from barnabas.groups.share.state import ShareState
from barnabas.metadata.image import MetadataImage

GROUPS_PER_TURN = 50  # about a millisecond


class DeletedTopics:
    __slots__ = ("_due_ms", "_state", "_topic_ids")

    def __init__(self, state: ShareState) -> None:
        self._state = state
        self._topic_ids: dict[str, set[bytes]] = {}  # by group: deleted topics that it still names
        self._due_ms: int | None = None

    def add(self, topic_ids: Collection[bytes], now_ms: int) -> None:
        for group in self._state.groups_with_state_of(topic_ids):
            self._topic_ids.setdefault(group.group_id, set()).update(topic_ids)
            self._due_ms = now_ms

    def clear(self) -> None:
        self._topic_ids.clear()
        self._due_ms = None

    def next_deadline_ms(self) -> int | None:
        return self._due_ms

    def on_clock_set(self, by_ms: int) -> None:
        if self._due_ms is not None:
            self._due_ms += by_ms

    def on_timer(self, now_ms: int, image: MetadataImage) -> list[Outcome]:
        """Run the next turn. More turns follow at once until all groups are done."""
        if self._due_ms is None or now_ms < self._due_ms:
            return []
        outcomes = []
        for group_id in list(islice(self._topic_ids, GROUPS_PER_TURN)):
            topic_ids = self._topic_ids.pop(group_id)
            group = self._state.groups.get(group_id)
            if group is not None and group.states is not None:
                after = group.states.without_topics(topic_ids)
                if after != group.states:
                    outcomes.append(Outcome([entries.states(group_id, after, image.topics)]))
        if not self._topic_ids:
            self._due_ms = None
        return outcomes
