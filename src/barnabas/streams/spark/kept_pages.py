"""Pages of a state file in memory: those that were read, the batch's changes, and committed steps that the
table of pages does not have yet.

In: pages by store and key, None for one that is deleted or missing. Out: the same, and of the oldest steps
the pages that have to be written: a page that a later step has replaced is never written. Does not know:
SQLite.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

Changes = dict[str, dict[bytes, bytes | None]]
Row = tuple[str, bytes, bytes | None]


class KeptPages:
    def __init__(self) -> None:
        self.changes: Changes = {}  # of the batch that runs
        self._pages: Changes = {}
        self._steps: deque[tuple[int, Changes]] = deque()  # oldest first
        self._newest: dict[str, dict[bytes, int]] = {}  # the last step that changed a page
        self._waiting = 0

    def of(self, store: str) -> dict[bytes, bytes | None]:
        """Pages of a store that are at hand; the caller adds those that it reads."""
        found = self._pages.get(store)
        if found is None:
            found = self._pages[store] = {}
        return found

    def put(self, store: str, changed: Mapping[bytes, bytes | None]) -> None:
        self.of(store).update(changed)
        self.changes.setdefault(store, {}).update(changed)

    @property
    def count(self) -> int:
        return sum(map(len, self._pages.values()))

    @property
    def count_of_changes(self) -> int:
        """Of the steps that wait."""
        return self._waiting

    @property
    def count_of_steps(self) -> int:
        return len(self._steps)

    def forget(self) -> None:
        """Drop the batch's changes and the pages that can be read again."""
        self.changes = {}
        self._pages = {}
        for _, changes in self._steps:
            self._bring_in(changes)

    def clear(self) -> None:
        self._steps.clear()
        self._newest.clear()
        self._waiting = 0
        self.forget()

    def _bring_in(self, changes: Changes) -> None:
        for store, pages in changes.items():
            self.of(store).update(pages)

    # -- steps -------------------------------------------------------------------------------------

    def add_step(self, number: int, changes: Changes) -> None:
        """A step was committed; its pages are the newest."""
        self._bring_in(changes)
        self._steps.append((number, changes))
        for store, pages in changes.items():
            self._newest.setdefault(store, {}).update(dict.fromkeys(pages, number))
            self._waiting += len(pages)

    def take_steps(self, waiting_max: int, steps_max: int) -> Iterable[Row]:
        """Take out the oldest steps, until so much waits at most; the rows that must be written."""
        rows: list[Row] = []
        while self._steps and (self._waiting > waiting_max or len(self._steps) > steps_max):
            rows += self._pop()
        return rows

    def drop_before(self, number: int) -> None:
        """Somebody else has written the steps before a number."""
        while self._steps and self._steps[0][0] < number:
            for _ in self._pop():
                pass

    def _pop(self) -> Iterator[Row]:
        number, changes = self._steps.popleft()
        for store, pages in changes.items():
            self._waiting -= len(pages)
            newest = self._newest[store]
            for key, page in pages.items():
                if newest[key] == number:
                    del newest[key]
                    yield store, key, page
