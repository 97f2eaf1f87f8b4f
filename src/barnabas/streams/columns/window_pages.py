"""Pages of windowed counts as columns: read, added to and written without a Python object for each window.

In: the store of windows whose values are numbers of eight bytes. Out: the pages, the index by time and the
records of the changelog that the store itself writes. Does not know: which records are late.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.plans.interpreter.state.time_index import TimeIndex
from barnabas.plans.interpreter.state.time_pages import page_key, page_keys
from barnabas.plans.interpreter.state.windows import WindowState, expired_max
from barnabas.spark.writing.rows import Column as Bytes
from barnabas.streams.columns import kernel
from barnabas.streams.columns.column import NotColumnar
from barnabas.streams.columns.entries import Entries, of_column, of_pages, together
from barnabas.streams.columns.formats import big_endian
from barnabas.streams.columns.grouping import Groups
from barnabas.streams.columns.task import ColumnTask, Written

ENTRY_HEAD = np.dtype([("time", ">i8"), ("size", ">u4")])
CHANGELOG_KEY = np.dtype([("time", ">i8"), ("sequence", ">i4")])
COUNT_BYTES = 8


def has_counts(state: WindowState) -> bool:
    serde = state.spec.value_serde
    return serde is not None and serde.format == "int64"


def key_endings(times: Any, sequences: Any) -> pa.Array:
    """The bytes behind a key in the changelog of windows."""
    endings = np.empty(len(times), CHANGELOG_KEY)
    endings["time"], endings["sequence"] = times, sequences
    return fixed(endings)


def fixed(rows: Any) -> pa.Array:
    """Each row of a packed array as bytes."""
    size = rows.dtype.itemsize
    offsets = np.arange(0, size * (len(rows) + 1), size, dtype=np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(rows.tobytes())]
    )


def add_to_index(index: TimeIndex, times: Any, keys: pa.Array) -> None:
    """Add entries that the index does not have, packed without a Python object for each."""
    numbers = times // index.segment_ms
    for number in np.unique(numbers).tolist():
        places = np.flatnonzero(numbers == number)
        some = keys.take(pa.array(places))
        heads = np.empty(len(places), ENTRY_HEAD)
        heads["time"], heads["size"] = times[places], pc.binary_length(some).to_numpy()
        packed = pc.binary_join_element_wise(fixed(heads), some, pa.scalar(b"", pa.binary()))
        index.add_packed(number, bytes(_bytes_of(packed)))


def _bytes_of(array: pa.Array) -> Any:
    """The bytes of all values, one behind the other."""
    found = Bytes(array)
    return found.data[found.at[0] : found.at[-1] + found.sizes[-1]]


class WindowCounts:
    """Counts of a batch on top of those in the store. `data` and `starts` have the key and the window of each
    record, `windows` groups them."""

    def __init__(
        self, task: ColumnTask, state: WindowState, data: pa.Array, starts: Any, times: Any, windows: Groups
    ) -> None:
        self._task, self._state = task, state
        self._starts = starts[windows.firsts]
        self._keys = data.take(pa.array(windows.firsts))
        numbers = self._starts // state.pages.page_ms
        pages = Groups(self._keys, numbers)
        self._pages = pages.ids  # the page of each window
        names = self._keys.take(pa.array(pages.firsts)).to_pylist()
        self._keyed = page_keys(names, numbers[pages.firsts].tolist())
        self._stored = of_pages(task.task.backend.get_many(state.spec.name, self._keyed))
        self._replaced = self._places(self._stored)
        is_there = self._replaced >= 0
        self.counts = np.bincount(windows.ids, minlength=windows.count)
        self.times = np.full(windows.count, -1, np.int64)
        replaced = self._stored.take(self._replaced[is_there])
        self.counts[is_there] += _numbers(replaced)
        self.times[is_there] = replaced.seconds
        kernel.max_by(windows.ids, times, self.times)
        self._is_new = ~is_there

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
        add_to_index(state.index, self._starts[added], self._keys.take(pa.array(added)))
        page_ms = state.pages.page_ms
        gone = state.index.pop_before(oldest, expired_max(int(is_kept.sum())))
        due = list(dict.fromkeys(page_key(key, start // page_ms) for start, key in gone))
        keyed, stored = self._keyed, self._stored
        stays = stored.firsts >= oldest
        stays[self._replaced[self._replaced >= 0]] = False
        stored = stored.take(np.flatnonzero(stays))
        if due:
            known = set(keyed)
            others = [key for key in due if key not in known]
            more = of_pages(backend.get_many(name, others), first=len(keyed))
            stored = together(stored, more.take(np.flatnonzero(more.firsts >= oldest)))
            keyed = keyed + others
        values = big_endian(pa.array(self.counts))
        new = of_column(self._pages, self._starts, self.times, values).take(np.flatnonzero(is_kept))
        pages = dict(zip(keyed, together(stored, new).pages(len(keyed)), strict=True))
        for key in [key for key, page in pages.items() if not page]:
            del pages[key]
            backend.delete(name, key)
        backend.put_many(name, pages.items())
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
    if data[:, 0].any():
        raise NotColumnar("a window's value is no count")  # but text, from an earlier version of a query
    return data.reshape(-1).view(">i8").astype(np.int64)
