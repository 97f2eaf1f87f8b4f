"""Topics that expressions match: searched for in turns of bounded work, then kept as topics come and go.

In: expressions, metadata, its changes. Out: names, once all topics were looked at. Groups with the same
expression share what was found, and a new topic is matched once for each expression.
Does not know: groups, when it is time to look.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.expressions.chars import RegexError
from barnabas.expressions.matching import matcher
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topic_changes import TopicChanges

NAMES_A_TURN = 300  # about a millisecond
EFFORT_MAX = 1_000_000  # instructions; what people write needs thousands
PATTERNS_MAX = 100


class Search:
    """One expression. `remaining` is None when all topics were looked at."""

    __slots__ = ("_effort", "_gone", "_pattern", "found", "remaining")

    def __init__(self, pattern: str, image: MetadataImage) -> None:
        self._pattern = pattern
        self._effort = 0
        self._gone: set[str] = set()  # deleted since the search began
        self.found: set[str] = set()
        self.remaining: Iterator[str] | None = iter(list(image.topics.by_name))

    def go_on(self) -> None:
        """The next turn."""
        assert self.remaining is not None
        for looked, name in enumerate(self.remaining, 1):
            if name not in self._gone:
                self._look_at(name)
            if looked == NAMES_A_TURN:
                return
        self.remaining = None
        self._gone.clear()

    def _look_at(self, name: str) -> None:
        """Add a topic if it matches. None is ever found if that takes too much effort in all."""
        try:
            found = matcher(self._pattern)
        except RegexError:
            return  # replayed from somebody who knew more
        before = found.effort
        if self._effort <= EFFORT_MAX and found.matches(name):
            self.found.add(name)
        self._effort += found.effort - before
        if self._effort > EFFORT_MAX:
            self.found.clear()

    def follow(self, changes: TopicChanges) -> None:
        self.found.difference_update(changes.deleted)
        if self.remaining is not None:
            self._gone.update(changes.deleted)
        for name in changes.created:
            self._look_at(name)


class TopicMatches:
    __slots__ = ("_searches",)

    def __init__(self) -> None:
        self._searches: dict[str, Search] = {}  # the one that was asked for last at the end

    def find(self, pattern: str, image: MetadataImage) -> frozenset[str] | None:
        """Topics that an expression matches; None when the search takes another turn."""
        search = self._searches.pop(pattern, None)
        if search is None:
            search = Search(pattern, image)
            if len(self._searches) >= PATTERNS_MAX:
                del self._searches[next(iter(self._searches))]
        self._searches[pattern] = search
        if search.remaining is not None:
            search.go_on()
        return frozenset(search.found) if search.remaining is None else None

    def follow(self, changes: TopicChanges) -> None:
        """Topics came and went."""
        if changes.created or changes.deleted:
            for search in self._searches.values():
                search.follow(changes)

    def clear(self) -> None:
        self._searches.clear()
