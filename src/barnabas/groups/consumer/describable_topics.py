"""The topics of an expression that a member may describe: asked for in turns of bounded work.

In: the topics that an expression matches, and a right to ask for each. Out: those with the right, once all
were asked for. A right costs three microseconds: ten thousand of them would keep everybody waiting.
Does not know: expressions, rights, when a search is due.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from barnabas.groups.basics.outcome import MayDescribe
from barnabas.groups.consumer.topic_matches import TopicMatches
from barnabas.metadata.image import MetadataImage

NAMES_PER_TURN = 300  # about a millisecond


class Filter:
    """The topics of one expression. Topics that are created or deleted between two turns count."""

    __slots__ = ("_allowed", "_asked", "_found", "_may_describe", "_remaining", "image")

    def __init__(self, may_describe: MayDescribe) -> None:
        self._may_describe = may_describe
        self._asked: set[str] = set()
        self._allowed: set[str] = set()
        self._found: frozenset[str] = frozenset()
        self._remaining: Iterator[str] = iter(())
        self.image: MetadataImage | None = None  # the metadata that the expression was searched in

    def update(self, found: frozenset[str], image: MetadataImage) -> None:
        self._found, self.image = found, image
        self._remaining = iter(found - self._asked)

    def ask_next(self) -> frozenset[str] | None:
        """Ask for the next turn's topics. None while some are left."""
        names = list(islice(self._remaining, NAMES_PER_TURN))
        self._asked.update(names)
        self._allowed.update(filter(self._may_describe, names))
        return self._found & self._allowed if len(names) < NAMES_PER_TURN else None


class DescribableTopics:
    __slots__ = ("_filters",)

    def __init__(self) -> None:
        self._filters: dict[str, dict[str, Filter]] = {}  # by group and expression, while it is searched

    def find(
        self,
        matches: TopicMatches,
        group_id: str,
        pattern: str,
        image: MetadataImage,
        may_describe: MayDescribe | None,
    ) -> frozenset[str] | None:
        """The topics that a group's expression matches and its member may describe; None while the search
        needs another turn. The first turn's member is asked for, also if another one comes meanwhile."""
        filters = self._filters.get(group_id, {})
        current = filters.get(pattern)
        if current is None or current.image is not image:
            found = matches.find(pattern, image)
            if found is None or (may_describe is None and current is None):
                return found
            if current is None:
                assert may_describe is not None
                current = filters[pattern] = Filter(may_describe)
                self._filters[group_id] = filters
            current.update(found, image)
        return current.ask_next()

    def forget(self, group_id: str) -> None:
        """Forget a group's search, because it is complete or the group is gone."""
        self._filters.pop(group_id, None)

    def clear(self) -> None:
        self._filters.clear()
