"""Pages of a state file in memory: those that were read, the batch's changes, and committed steps that the
table of pages does not have yet.

Pages that were read or changed are in one of two *generations*. When the younger one has half of the bytes
that may stay, or after some batches, it becomes the older one, and what nobody has asked for since the last
time is dropped.

In: pages by store and key, None for one that is deleted or missing. Out: the same, and of the oldest steps
the pages that have to be written: a page that a later step has replaced is never written. Does not know:
SQLite.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

Changes = dict[str, dict[bytes, bytes | None]]
Row = tuple[str, bytes, bytes | None]


PAGES_BYTES_MAX = 128 * 1024 * 1024  # of both generations, as they are between two batches
BATCHES_A_GENERATION = 50
PAGE_OVERHEAD = 200  # bytes that Python needs for a page, its key and their place


def weight_of(pages: Mapping[bytes, bytes | None]) -> int:
    return PAGE_OVERHEAD * len(pages) + sum(map(len, filter(None, pages.values())))


def weight_of_all(changes: Changes) -> int:
    return sum(map(weight_of, changes.values()))


class KeptPages:
    def __init__(self) -> None:
        self.changes: Changes = {}  # of the batch that runs
        self.misses = 0  # pages that had to be read
        self._pages: Changes = {}
        self._older: Changes = {}
        self._weight = 0  # of the younger pages: at least as much as they have
        self._batches = 0  # of the younger generation
        self._steps: deque[tuple[int, Changes, int]] = deque()  # oldest first, each with its weight
        self._newest: dict[str, dict[bytes, int]] = {}  # the last step that changed a page
        self._waiting = 0
        self._waiting_weight = 0

    def of(self, store: str) -> dict[bytes, bytes | None]:
        """Pages of a store that are at hand without `missing`; to be read only."""
        found = self._pages.get(store)
        if found is None:
            found = self._pages[store] = {}
        return found

    def missing(self, store: str, keys: Iterable[bytes]) -> list[bytes]:
        """Keys whose pages are not in memory. The others are in `of(store)` then."""
        kept, older = self.of(store), self._older.get(store, {})
        found = []
        for key in keys:
            if key not in kept:
                if key in older:
                    page = kept[key] = older.pop(key)
                    self._weight += PAGE_OVERHEAD + len(page or b"")
                else:
                    found.append(key)
        self.misses += len(found)
        return found

    def keep(self, store: str, pages: Mapping[bytes, bytes | None]) -> None:
        """Keep pages that were read."""
        self.of(store).update(pages)
        self._weight += weight_of(pages)

    def put(self, store: str, changed: Mapping[bytes, bytes | None]) -> None:
        self.keep(store, changed)
        self.changes.setdefault(store, {}).update(changed)

    def put_one(self, store: str, key: bytes, page: bytes | None) -> None:
        self.of(store)[key] = page
        self.changes.setdefault(store, {})[key] = page
        self._weight += PAGE_OVERHEAD + len(page or b"")

    def age(self) -> None:
        """A batch begins: drop pages that were not used for long, where there are many or at times."""
        self._batches += 1
        if self._weight > PAGES_BYTES_MAX // 2:
            self._weight = weight_of_all(self._pages)  # pages that changed were counted each time
        if self._weight > PAGES_BYTES_MAX // 2 or self._batches >= BATCHES_A_GENERATION:
            younger, self._pages, self._older = self._pages, {}, {}
            for _, changes, _ in self._steps:
                self._bring_in(changes, self._older)  # the table does not have them
            self._bring_in(younger, self._older)
            self._weight = self._batches = 0

    @property
    def weight(self) -> int:
        """Bytes of the pages of both generations."""
        return weight_of_all(self._pages) + weight_of_all(self._older)

    @property
    def count_of_steps(self) -> int:
        return len(self._steps)

    def forget(self) -> None:
        """Drop the batch's changes and the pages that can be read again."""
        self.changes = {}
        self._pages, self._older = {}, {}
        self._weight = self._batches = 0
        for _, changes, _ in self._steps:
            self._bring_in(changes, self._pages)

    def clear(self) -> None:
        self._steps.clear()
        self._newest.clear()
        self._waiting = self._waiting_weight = 0
        self.forget()

    @staticmethod
    def _bring_in(changes: Changes, generation: Changes) -> None:
        for store, pages in changes.items():
            generation.setdefault(store, {}).update(pages)

    # -- steps -------------------------------------------------------------------------------------

    def add_step(self, number: int, changes: Changes) -> None:
        """A step was committed; its pages are the newest."""
        self._bring_in(changes, self._pages)
        weight = weight_of_all(changes)
        self._steps.append((number, changes, weight))
        self._waiting_weight += weight
        for store, pages in changes.items():
            self._newest.setdefault(store, {}).update(dict.fromkeys(pages, number))
            self._waiting += len(pages)

    def take_steps(self, waiting_max: int, steps_max: int, bytes_max: int) -> Iterable[Row]:
        """Take out the oldest steps, until so much waits at most; the rows that must be written."""
        rows: list[Row] = []
        while self._steps and (
            self._waiting > waiting_max or len(self._steps) > steps_max or self._waiting_weight > bytes_max
        ):
            rows += self._pop()
        return rows

    def drop_before(self, number: int) -> None:
        """Somebody else has written the steps before a number."""
        while self._steps and self._steps[0][0] < number:
            for _ in self._pop():
                pass

    def _pop(self) -> Iterator[Row]:
        number, changes, weight = self._steps.popleft()
        self._waiting_weight -= weight
        for store, pages in changes.items():
            self._waiting -= len(pages)
            newest = self._newest[store]
            for key, page in pages.items():
                if newest[key] == number:
                    del newest[key]
                    yield store, key, page
