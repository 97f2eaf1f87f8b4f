"""The speed layer: what happened to a view after a version, from the changes of its table.

In: a definition, the master data, two versions. Out: a `SpeedPart`. Rows that were only added give
increments: the view's SQL on just these rows. Keys of which rows were changed or deleted are computed anew,
as of the later version, and replace what was there; keys that have no rows any more are gone. Does not know:
the store, the batch layer, how increments are merged.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from barnabas.pipeline.views.computing import Computing
from barnabas.pipeline.views.definition import Definition
from barnabas.pipeline.views.layout import Layout
from barnabas.pipeline.views.master import CHANGE, CHANGE_COLUMNS, INSERT, Master
from barnabas.pipeline.views.parts import GONE, REPLACES, Position, SpeedPart

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class Speed:
    """Computes parts of one view."""

    def __init__(self, computing: Computing, definition: Definition, master: Master, layout: Layout) -> None:
        self._computing = computing
        self._definition = definition
        self._master = master
        self._layout = layout

    def compute(self, after: int, upto: Position) -> SpeedPart:
        """The part for (after, upto]."""
        changes = self._master.changes(after, upto.version)
        added = changes.where(f"{CHANGE} = '{INSERT}'").drop(*CHANGE_COLUMNS)
        touched = None
        if not self._master.only_adds(after, upto.version):
            other = changes.where(f"{CHANGE} <> '{INSERT}'").drop(*CHANGE_COLUMNS)
            touched = self._touched(other)
        increments = self._increments(added, touched)
        rows = increments if touched is None else pa.concat_tables([increments, self._anew(touched, upto)])
        return SpeedPart(self._layout, after, upto, rows)

    def of_rows(self, rows: DataFrame, after: int, upto: Position) -> SpeedPart:
        """The part for the one version that added exactly these rows and changed none."""
        return SpeedPart(self._layout, after, upto, self._increments(rows, None))

    def _touched(self, rows: DataFrame) -> DataFrame | None:
        """Keys of rows that were changed or deleted, before and after; None where there are none."""
        keys = self._definition.keys
        with self._computing.over(self._definition, rows) as view:
            if not keys:
                return None if rows.isEmpty() else view.sparkSession.range(1).select()
            found = view.select(*keys)
            table = found.toArrow()
            return view.sparkSession.createDataFrame(table, found.schema) if table.num_rows else None

    def _increments(self, rows: DataFrame, touched: DataFrame | None) -> pa.Table:
        if touched is not None and not self._definition.keys:
            return self._flagged(self._layout.schema.empty_table(), replaces=False)
        with self._computing.over(self._definition, rows) as view:
            if touched is not None:
                view = view.join(touched, self._same(view, touched), "left_anti")
            return self._flagged(view.toArrow(), replaces=False)

    def _anew(self, touched: DataFrame, upto: Position) -> pa.Table:
        """The touched keys as of the later version."""
        from pyspark.sql import functions as F

        with self._computing.over(self._definition, self._master.rows(upto.version)) as view:
            if not self._definition.keys:
                return self._flagged(view.toArrow(), replaces=True)
            anew = view.join(F.broadcast(touched), self._same(view, touched), "left_semi").toArrow()
        names = list(self._definition.keys)
        there = set(zip(*(anew[name].to_pylist() for name in names), strict=True))
        keys = touched.toArrow()
        gone = [key not in there for key in zip(*(keys[name].to_pylist() for name in names), strict=True)]
        lost = keys.filter(pa.array(gone, pa.bool_()))
        return pa.concat_tables(
            [self._flagged(anew, replaces=True), self._flagged(self._without_measures(lost), gone=True)]
        )

    def _same(self, view: DataFrame, touched: DataFrame) -> Column:
        return reduce(
            lambda left, right: left & right,
            [view[name].eqNullSafe(touched[name]) for name in self._definition.keys],
        )

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
