"""The topics that regular expressions match: searched in turns of bounded work, then kept up to date.

In: expressions, metadata, its changes. Out: names, once all topics were searched. Groups with equal
expressions share the result, and a new topic is matched once per expression.
Does not know: groups, when a search is due.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.expressions.chars import RegexError
from barnabas.expressions.matching import matcher
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topic_changes import TopicChanges

NAMES_PER_TURN = 300  # about a millisecond
EFFORT_MAX = 1_000_000  # matcher steps; ordinary expressions need thousands
PATTERNS_MAX = 100


class Search:
    """The search for one expression. `remaining` is None when all topics were searched."""

    __slots__ = ("_deleted", "_effort", "_pattern", "found", "remaining")

    def __init__(self, pattern: str, image: MetadataImage) -> None:
        self._pattern = pattern
        self._effort = 0
        self._deleted: set[str] = set()  # since the search began
        self.found: set[str] = set()
        self.remaining: Iterator[str] | None = iter(list(image.topics.by_name))

    def search_next(self) -> None:
        """Search the next turn's topics."""
        assert self.remaining is not None
        for looked, name in enumerate(self.remaining, 1):
            if name not in self._deleted:
                self._look_at(name)
            if looked == NAMES_PER_TURN:
                return
        self.remaining = None
        self._deleted.clear()

    def _look_at(self, name: str) -> None:
        """Add a topic if it matches. An expression that takes too much effort in total matches nothing."""
        try:
            found = matcher(self._pattern)
        except RegexError:
            return  # a newer version accepted this expression, and it was replayed
        before = found.effort
        if self._effort <= EFFORT_MAX and found.matches(name):
            self.found.add(name)
        self._effort += found.effort - before
        if self._effort > EFFORT_MAX:
            self.found.clear()

    def update(self, changes: TopicChanges) -> None:
        self.found.difference_update(changes.deleted)
        if self.remaining is not None:
            self._deleted.update(changes.deleted)
        for name in changes.created:
            self._look_at(name)


class TopicMatches:
    __slots__ = ("_searches",)

    def __init__(self) -> None:
        self._searches: dict[str, Search] = {}  # the most recently used is last

    def find(self, pattern: str, image: MetadataImage) -> frozenset[str] | None:
        """The topics that an expression matches; None while the search needs another turn."""
        search = self._searches.pop(pattern, None)
        if search is None:
            search = Search(pattern, image)
            if len(self._searches) >= PATTERNS_MAX:
                del self._searches[next(iter(self._searches))]
        self._searches[pattern] = search
        if search.remaining is not None:
            search.search_next()
        return frozenset(search.found) if search.remaining is None else None

    def update(self, changes: TopicChanges) -> None:
        """Update the results after topics were created or deleted."""
        if changes.created or changes.deleted:
            for search in self._searches.values():
                search.update(changes)

    def clear(self) -> None:
        self._searches.clear()
