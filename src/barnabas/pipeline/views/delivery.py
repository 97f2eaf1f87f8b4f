"""Brings a computed part to where the store finds it.

In: a frame. Out: rows that travel with the request if they are few; else Parquet files that the executors
write into the lake. A small part is served tens of milliseconds earlier without files; a large one never
passes through the driver. Files are deleted when the store has them, and those of killed processes when the
view has moved on. Does not know: layers, HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from barnabas.pipeline.views.layout import Layout
from barnabas.pipeline.views.part_files import LakeParts, fitted
from barnabas.pipeline.views.parts import GONE, REPLACES, PartRows, ViewState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INLINE_ROWS_MAX = 10_000
INLINE_BYTES_MAX = 16 << 20


class Delivery:
    """Delivers parts of a pipeline's views. It remembers which views have large parts."""

    def __init__(self, lake: LakeParts) -> None:
        self._lake = lake
        self._large: set[str] = set()
        self._swept: set[str] = set()

    def batch(self, frame: DataFrame, layout: Layout, horizon: int, state: ViewState | None) -> PartRows:
        """A view that is known to be small travels inline; its first part may be of any size."""
        if state is not None and state.rows <= INLINE_ROWS_MAX:
            rows = self._few(frame, layout.schema)
            if rows is not None:
                return rows
        return self._lake.write(frame.select(*layout.schema.names), layout.view, "batch", -1, horizon)

    def speed(self, frame: DataFrame, layout: Layout, after: int, upto: int) -> PartRows:
        """A part travels inline, unless the last one was large."""
        schema = flagged(layout)
        if layout.view not in self._large:
            rows = self._few(frame, schema)
            if rows is not None:
                return rows
        found = self._lake.write(frame.select(*schema.names), layout.view, "speed", after, upto)
        if found.num_rows > INLINE_ROWS_MAX:
            self._large.add(layout.view)
        else:
            self._large.discard(layout.view)
        return found

    def increments(self, frame: DataFrame, layout: Layout) -> pa.Table | None:
        """A few rows for later; None if they are many."""
        return None if layout.view in self._large else self._few(frame, flagged(layout))

    def _few(self, frame: DataFrame, schema: pa.Schema) -> pa.Table | None:
        rows = frame.limit(INLINE_ROWS_MAX + 1).toArrow()
        if rows.num_rows > INLINE_ROWS_MAX or rows.nbytes > INLINE_BYTES_MAX:
            return None
        return fitted(rows, schema)

    def done(self, rows: PartRows) -> None:
        """The store has the part, or has refused it."""
        self._lake.delete(rows)

    def sweep(self, view: str, state: ViewState | None, *, once: bool) -> None:
        """Delete files of parts that no store will read. `once`: only at the first call for a view."""
        if once and view in self._swept:
            return
        self._swept.add(view)
        self._lake.sweep(view, state)


def flagged(layout: Layout) -> pa.Schema:
    """The schema of a speed part."""
    return layout.schema.append(pa.field(REPLACES, pa.bool_())).append(pa.field(GONE, pa.bool_()))
