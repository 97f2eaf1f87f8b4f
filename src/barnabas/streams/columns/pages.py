"""Pages of counts as columns: read, added to and written without a Python object for each of their parts.

In: the store of a table whose values are numbers of eight bytes. Out: the same pages and records of the
changelog as the store itself writes. Does not know: the interpreter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.plans.interpreter.state.pages import KEYED
from barnabas.plans.interpreter.state.tables import TableState
from barnabas.plans.interpreter.task import Task
from barnabas.streams.columns import kernel
from barnabas.streams.columns.column import NotColumnar
from barnabas.streams.columns.formats import big_endian
from barnabas.streams.columns.grouping import Groups
from barnabas.streams.columns.task import ColumnTask, Written

PAGE = np.dtype([("time", ">i8"), ("count", ">i8")])


class CountPages:
    """The pages of a store of counts."""

    def __init__(self, task: Task, state: TableState) -> None:
        self._backend, self._store = task.backend, state.spec.name
        topic = state.spec.changelog_topic(task.application_id)
        self._changelog = None if state.spec.source_topic is not None else topic
        self._partition = task.partition

    @classmethod
    def of(cls, task: Task, state: TableState) -> CountPages | None:
        """The pages of a store; None where values are not numbers of eight bytes."""
        serde = state.spec.value_serde
        return cls(task, state) if serde is not None and serde.format == "int64" else None

    def add(self, task: ColumnTask, keys: pa.Array, groups: Groups, times: Any) -> tuple[Any, Any]:
        """Count the rows of each group on top of its page; the new counts and times."""
        names = [KEYED + key for key in keys.to_pylist()]
        stored = self._backend.get_many(self._store, names)
        counts, newest = np.zeros(groups.count, np.int64), np.full(groups.count, -1, np.int64)
        there = [place for place, page in enumerate(stored) if page is not None]
        if there:
            found = [page for page in stored if page is not None]
            data = b"".join(found)
            if any(len(page) != PAGE.itemsize for page in found):
                raise NotColumnar(f"a page of {self._store} is not a number of eight bytes")
            pages = np.frombuffer(data, PAGE)
            if (pages["count"] >> 56).any():
                raise NotColumnar(f"a page of {self._store} is no count")  # but text of an earlier version
            counts[there], newest[there] = pages["count"], pages["time"]
        counts += np.bincount(groups.ids, minlength=groups.count)
        kernel.max_by(groups.ids, times, newest)
        task.pending.append(lambda: self._write(task, names, keys, counts, newest))
        return counts, newest

    def _write(self, task: ColumnTask, names: list[bytes], keys: pa.Array, counts: Any, times: Any) -> None:
        pages = np.empty(len(counts), PAGE)
        pages["time"], pages["count"] = times, counts
        data = pages.tobytes()
        size = PAGE.itemsize
        self._backend.put_many(
            self._store, [(name, data[size * at : size * at + size]) for at, name in enumerate(names)]
        )
        if self._changelog is not None:
            values = big_endian(pa.array(counts))
            order = np.arange(len(counts))
            task.written.append(Written(self._changelog, keys, values, times, order, None, self._partition))
