"""Origins of the records of a batch, and what happened to them, by their order.

In: the parts of a batch, problems of expressions and records that cannot be read, as steps find them. Out:
the calls of the task's handlers, record after record, as the interpreter makes them. Does not know: steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.plans.interpreter.records import Headers, Record
from barnabas.plans.interpreter.task import Task

US_A_MS = 1000


class Origins:
    """The records of one batch. `node` is the place of the step that runs, in the order of the plan."""

    def __init__(self, task: Task, parts: Sequence[Any], orders: Sequence[Any]) -> None:
        self._task, self._parts = task, parts
        count = sum(part.records.num_rows for part in parts)
        self._part, self._row = np.empty(count, np.int64), np.empty(count, np.int64)
        for number, order in enumerate(orders):
            self._part[order] = number
            self._row[order] = np.arange(len(order))
        self.node = 0
        self._deferred: list[tuple[tuple[int, int, int, int], Callable[[], None]]] = []

    def record(self, order: int) -> Record:
        """The record as the source read it."""
        part = self._parts[self._part[order]]
        row = int(self._row[order])
        key, value, offset, time = (
            part.records.column(name)[row] for name in ("key", "value", "offset", "timestamp")
        )
        milliseconds = time.value // US_A_MS
        return Record(
            key.as_py(), value.as_py(), milliseconds, self.headers(order), part.partition, offset.as_py()
        )

    def topic(self, order: int) -> str:
        return str(self._parts[self._part[order]].topic)

    def partition(self, order: int) -> int:
        return int(self._parts[self._part[order]].partition)

    def offset(self, order: int) -> int:
        found = self._parts[self._part[order]].records.column("offset")[int(self._row[order])].as_py()
        return -1 if found is None else int(found)

    def offsets(self, orders: Any) -> pa.Array:
        """The offset of each record."""
        starts = np.cumsum([0, *(part.records.num_rows for part in self._parts)])
        every = pa.concat_arrays([part.records.column("offset") for part in self._parts])
        return every.take(pa.array(starts[self._part[orders]] + self._row[orders]))

    def headers(self, order: int) -> Headers:
        found = self._parts[self._part[order]].records.column("headers")[int(self._row[order])].as_py()
        return tuple((each["key"], each["value"]) for each in found or ())

    def defer(self, order: int, row: int, call: Callable[[], None]) -> None:
        """Call it when the batch is done, in the order of the records, then of the plan's steps."""
        place = (order, self.node, row, len(self._deferred))

        def at_its_record() -> None:
            task = self._task
            task.topic, task.offset = self.topic(order), self.offset(order)
            task.headers = self.headers(order)
            call()

        self._deferred.append((place, at_its_record))

    def report(
        self, order: int, place: int, logger: str, message: str, error: Exception, row: Any = None
    ) -> None:
        """An expression of a record raised: its value is null."""
        self.defer(order, place, lambda: self._task.report(logger, message, error, row))

    def finish(self) -> None:
        """Make the calls that were deferred. A handler may raise: the batch has written nothing yet."""
        for _, call in sorted(self._deferred, key=lambda each: each[0]):
            call()


class Cursor:
    """The task as expressions that run in Python see it: at the record of one row."""

    __slots__ = ("_orders", "_origins", "row")

    def __init__(self, origins: Origins, orders: Any) -> None:
        self._origins, self._orders = origins, orders
        self.row = 0

    @property
    def _order(self) -> int:
        return int(self._orders[self.row])

    @property
    def topic(self) -> str:
        return self._origins.topic(self._order)

    @property
    def partition(self) -> int:
        return self._origins.partition(self._order)

    @property
    def offset(self) -> int:
        return self._origins.offset(self._order)

    @property
    def offsets(self) -> pa.Array:
        """The offsets of all rows."""
        return self._origins.offsets(self._orders)

    @property
    def headers(self) -> Headers:
        return self._origins.headers(self._order)

    def report(self, logger: str, message: str, error: Exception, row: Any = None) -> None:
        self._origins.report(self._order, self.row, logger, message, error, row)
