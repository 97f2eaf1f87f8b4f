"""The speed layer: what changed in a view after a version, from the changes of its table.

In: a definition, the view's table, two versions. Out: a `SpeedPart`. Added rows give increments: the
view's SQL on just these rows. Keys with changed or deleted rows are recomputed as of the later version and
replace the old values; keys without rows are gone. Does not know: the store, the batch layer, how
increments are merged.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from barnabas.pipeline.views.computing import Computing
from barnabas.pipeline.views.definition import Definition
from barnabas.pipeline.views.layout import Layout
from barnabas.pipeline.views.parts import GONE, REPLACES, SpeedPart, TableVersion
from barnabas.pipeline.views.source_table import CHANGE, CHANGE_COLUMNS, INSERT, SourceTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SpeedLayer:
    """Computes speed parts of one view."""

    def __init__(
        self, computing: Computing, definition: Definition, source_table: SourceTable, layout: Layout
    ) -> None:
        self._computing = computing
        self._definition = definition
        self._source_table = source_table
        self._layout = layout

    def compute(self, after: int, upto: TableVersion) -> SpeedPart:
        """The part for (after, upto]."""
        changes = self._source_table.changes(after, upto.version)
        added = changes.where(f"{CHANGE} = '{INSERT}'").drop(*CHANGE_COLUMNS)
        touched = None
        if not self._source_table.only_adds(after, upto.version):
            other = changes.where(f"{CHANGE} <> '{INSERT}'").drop(*CHANGE_COLUMNS)
            touched = self._touched(other)
        increments = self._increments(added, touched)
        rows = (
            increments if touched is None else pa.concat_tables([increments, self._recomputed(touched, upto)])
        )
        return SpeedPart(self._layout, after, upto, rows)

    def of_rows(self, rows: DataFrame) -> pa.Table:
        """Rows of the part for a version that adds exactly these rows."""
        return self._increments(rows, None)

    def _touched(self, rows: DataFrame) -> pa.Table | None:
        """Keys of changed or deleted rows, before and after the change; None if there are none."""
        with self._computing.over(self._definition, rows) as view:
            if not self._definition.keys:
                return None if rows.isEmpty() else pa.table({})
            keys = view.select(*self._definition.keys).toArrow()
            return keys if keys.num_rows else None

    def _increments(self, rows: DataFrame, touched: pa.Table | None) -> pa.Table:
        if touched is not None and not self._definition.keys:
            return self._flagged(self._layout.schema.empty_table(), replaces=False)
        with self._computing.over(self._definition, rows) as view:
            if touched is not None:
                view = self._joined(view, touched, "left_anti")
            return self._flagged(view.toArrow(), replaces=False)

    def _recomputed(self, touched: pa.Table, upto: TableVersion) -> pa.Table:
        """Recompute the touched keys as of the later version."""
        with self._computing.over(self._definition, self._source_table.rows(upto.version)) as view:
            if not self._definition.keys:
                return self._flagged(view.toArrow(), replaces=True)
            recomputed = self._joined(view, touched, "left_semi").toArrow()
        there = set(self._keys(recomputed))
        gone = [key not in there for key in self._keys(touched)]
        lost = self._without_measures(touched.filter(pa.array(gone, pa.bool_())))
        return pa.concat_tables([self._flagged(recomputed, replaces=True), self._flagged(lost, gone=True)])

    def _keys(self, rows: pa.Table) -> list[tuple[Any, ...]]:
        return list(zip(*(rows[name].to_pylist() for name in self._definition.keys), strict=True))

    def _joined(self, view: DataFrame, touched: pa.Table, how: str) -> DataFrame:
        """The view's rows with touched keys (left_semi) or without (left_anti). Null is a key too."""
        from pyspark.sql import functions as F

        names = self._definition.keys
        keys = view.sparkSession.createDataFrame(touched, view.select(*names).schema)
        same = reduce(lambda left, right: left & right, [view[name].eqNullSafe(keys[name]) for name in names])
        return view.join(F.broadcast(keys), same, how)

    def _without_measures(self, keys: pa.Table) -> pa.Table:
        columns = [
            keys[field.name] if field.name in keys.schema.names else pa.nulls(keys.num_rows, field.type)
            for field in self._layout.schema
        ]
        return pa.table(columns, names=self._layout.schema.names)

    def _flagged(self, rows: pa.Table, *, replaces: bool = False, gone: bool = False) -> pa.Table:
        def flags(value: bool) -> Any:
            return pa.array([value] * rows.num_rows, pa.bool_())

        rows = rows.select(self._layout.schema.names).cast(self._layout.schema)
        return rows.append_column(REPLACES, flags(replaces or gone)).append_column(GONE, flags(gone))
