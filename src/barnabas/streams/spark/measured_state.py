"""A state file that measures accesses to its stores, for `metrics.recording.level=DEBUG`.

In: calls of the logic. Out: the same results, and measures by store, until `pop_measures` takes them. A call
for many pages is measured as one. Does not know: batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from time import perf_counter_ns

from barnabas.plans.interpreter.task import TASK_STORE
from barnabas.streams.spark.batch_measures import Accesses, StoreMeasures
from barnabas.streams.spark.state_files import StateFile

NONE = Accesses()


class MeasuredStateFile(StateFile):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._accesses: dict[str, dict[str, Accesses]] = {}
        self._hits: dict[str, int] = {}

    def get(self, store: str, key: bytes) -> bytes | None:
        misses, began_ns = self._memory.misses, perf_counter_ns()
        found = super().get(store, key)
        self._note(store, "get", 1, began_ns)
        self._note_hits(store, 1 - (self._memory.misses - misses))
        return found

    def get_many(self, store: str, keys: Sequence[bytes]) -> list[bytes | None]:
        misses, began_ns = self._memory.misses, perf_counter_ns()
        found = super().get_many(store, keys)
        self._note(store, "get", len(keys), began_ns)
        self._note_hits(store, len(keys) - (self._memory.misses - misses))
        return found

    def put(self, store: str, key: bytes, page: bytes) -> None:
        began_ns = perf_counter_ns()
        super().put(store, key, page)
        self._note(store, "put", 1, began_ns)

    def put_many(self, store: str, pages: Iterable[tuple[bytes, bytes]]) -> None:
        given, began_ns = list(pages), perf_counter_ns()
        super().put_many(store, given)
        self._note(store, "put", len(given), began_ns)

    def delete(self, store: str, key: bytes) -> None:
        began_ns = perf_counter_ns()
        super().delete(store, key)
        self._note(store, "delete", 1, began_ns)

    def range(self, store: str, first: bytes | None, last: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Only the time until the pages can be read is measured: their reader decides how many it wants."""
        began_ns = perf_counter_ns()
        found = super().range(store, first, last)
        self._note(store, "range", 1, began_ns)
        return found

    def pop_measures(self) -> dict[str, StoreMeasures]:
        """Return and forget the measures since the last call."""
        accesses, self._accesses = self._accesses, {}
        hits, self._hits = self._hits, {}
        accesses.pop(TASK_STORE, None)  # small state of operators
        return {store: StoreMeasures(each, hits.get(store, 0)) for store, each in accesses.items()}

    def _note(self, store: str, kind: str, pages: int, began_ns: int) -> None:
        if pages:
            of_store = self._accesses.setdefault(store, {})
            of_store[kind] = of_store.get(kind, NONE).plus(pages, perf_counter_ns() - began_ns)

    def _note_hits(self, store: str, count: int) -> None:
        self._hits[store] = self._hits.get(store, 0) + count
