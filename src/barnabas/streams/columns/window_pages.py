"""Pages of windowed counts as columns: read, added to and written without a Python object for each window.

In: the store of windows whose values are numbers of eight bytes. Out: the pages, the index by time and the
records of the changelog that the store itself writes. Does not know: which records are late.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.plans.interpreter.state.pages import KEYED
from barnabas.plans.interpreter.state.windows import WindowState
from barnabas.streams.columns import kernel
from barnabas.streams.columns.column import NotColumnar
from barnabas.streams.columns.entries import Entries, of_column, of_pages, together
from barnabas.streams.columns.formats import big_endian
from barnabas.streams.columns.grouping import Groups
from barnabas.streams.columns.task import ColumnTask, Written

CHANGELOG_KEY = np.dtype([("time", ">i8"), ("sequence", ">i4")])
COUNT_BYTES = 8


def has_counts(state: WindowState) -> bool:
    serde = state.spec.value_serde
    return serde is not None and serde.format == "int64"


def key_endings(times: Any, sequences: Any) -> pa.Array:
    """What stands behind a key in the changelog of windows."""
    endings = np.empty(len(times), CHANGELOG_KEY)
    endings["time"], endings["sequence"] = times, sequences
    size = CHANGELOG_KEY.itemsize
    offsets = np.arange(0, size * (len(endings) + 1), size, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(endings.tobytes())]
    return pa.Array.from_buffers(pa.binary(), len(endings), buffers)


class WindowCounts:
    """Counts of a batch on top of those in the store. `data` and `starts` have the key and the window of each
    record, `windows` groups them."""

    def __init__(
        self, task: ColumnTask, state: WindowState, data: pa.Array, starts: Any, times: Any, windows: Groups
    ) -> None:
        self._task, self._state = task, state
        self._starts = starts[windows.firsts]
        keys = Groups(data)
        self._names = data.take(pa.array(keys.firsts)).to_pylist()
        self._pages = keys.ids[windows.firsts]  # the page of each window
        self._keys = data.take(pa.array(windows.firsts))
        stored = self._load(self._names)
        place = self._places(stored)
        is_there = place >= 0
        self.counts = np.bincount(windows.ids, minlength=windows.count)
        self.times = np.full(windows.count, -1, np.int64)
        numbers = _numbers(stored)
        self.counts[is_there] += numbers[place[is_there]]
        self.times[is_there] = stored.seconds[place[is_there]]
        kernel.max_by(windows.ids, times, self.times)
        self._is_new = ~is_there

    def _load(self, names: list[bytes]) -> Entries:
        keyed = [KEYED + name for name in names]
        return of_pages(self._task.task.backend.get_many(self._state.spec.name, keyed))

    def _places(self, stored: Entries) -> Any:
        """The entry of each window, -1 where there is none."""
        if not len(stored):
            return np.full(len(self._starts), -1, np.int64)
        both = np.concatenate([stored.firsts, self._starts])
        distinct, windows = np.unique(both, return_inverse=True)
        known = stored.groups * len(distinct) + windows[: len(stored)]
        asked = self._pages * len(distinct) + windows[len(stored) :]
        order = np.argsort(known, kind="stable")
        found = np.minimum(np.searchsorted(known[order], asked), len(known) - 1)
        return np.where(known[order][found] == asked, order[found], -1)

    def write(self) -> None:
        state, backend, name = self._state, self._task.task.backend, self._state.spec.name
        state.observe(int(self._starts.max()))
        oldest = state.observed_time - state.retention_ms + 1
        is_kept = self._starts >= oldest
        added = np.flatnonzero(self._is_new & is_kept)
        fresh = zip(self._starts[added].tolist(), self._keys.take(pa.array(added)).to_pylist(), strict=True)
        state.index.add_many(fresh)
        known = set(self._names)
        due = [
            key for key in dict.fromkeys(key for _, key in state.index.pop_before(oldest)) if key not in known
        ]
        names = self._names + due
        stored = self._load(names)
        replaced = self._places(stored)
        stays = stored.firsts >= oldest
        stays[replaced[replaced >= 0]] = False
        values = big_endian(pa.array(self.counts))
        new = of_column(self._pages, self._starts, self.times, values).take(np.flatnonzero(is_kept))
        put = []
        both = together(stored.take(np.flatnonzero(stays)), new)
        for key, page in zip(names, both.pages(len(names)), strict=True):
            if page:
                put.append((KEYED + key, page))
            else:
                backend.delete(name, KEYED + key)
        backend.put_many(name, put)
        topic = state.spec.changelog_topic(self._task.task.application_id)
        if topic is not None and state.spec.source_topic is None:
            ends = key_endings(self._starts, np.zeros(len(self._starts), np.int32))
            named = pc.binary_join_element_wise(self._keys, ends, pa.scalar(b"", pa.binary()))
            order = np.arange(len(self._starts))
            partition = self._task.task.partition
            self._task.written.append(Written(topic, named, values, self.times, order, None, partition))


def _numbers(stored: Entries) -> Any:
    if not len(stored):
        return np.empty(0, np.int64)
    if (stored.sizes != COUNT_BYTES).any():
        raise NotColumnar("a window's value is not a number of eight bytes")
    data = stored.data[stored.at[:, None] + np.arange(COUNT_BYTES)[None, :]]
    return data.reshape(-1).view(">i8").astype(np.int64)
