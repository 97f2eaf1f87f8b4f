"""The speed layer: what changed in a view after a version, from the changes of its tables.

In: a definition, the view's table, two states. Out: a `SpeedPart`. Added rows give increments: the view's SQL
on just these rows. Keys with changed or deleted rows, and keys of rows that match changed rows of a joined
table, are recomputed as of the later state and replace the old values; keys without rows are gone. Executors
do all of it, and no row comes to the driver. Does not know: the store, the batch layer, how increments are
merged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, TypeVar

from barnabas.pipeline.increments.scopes import Scope
from barnabas.pipeline.increments.source_table import (
    CHANGE,
    CHANGE_COLUMNS,
    INSERT,
    SourceTable,
    TableVersion,
)
from barnabas.pipeline.lake.tables import TableName
from barnabas.pipeline.spec.star import affected_sql
from barnabas.pipeline.views.batch_layer import Deliver
from barnabas.pipeline.views.computing import Computing
from barnabas.pipeline.views.definition import Definition
from barnabas.pipeline.views.layout import Layout
from barnabas.pipeline.views.parts import GONE, REPLACES, Joined, SpeedPart

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BROADCAST_KEYS_MAX = 100_000
TOUCHED = "_touched_"

T = TypeVar("T")
TableOf = Callable[[TableName], SourceTable]


class SpeedLayer:
    """Computes speed parts of one view. `table_of` finds joined tables."""

    def __init__(
        self,
        computing: Computing,
        definition: Definition,
        source_table: SourceTable,
        layout: Layout,
        table_of: TableOf,
    ) -> None:
        self._computing = computing
        self._definition = definition
        self._source_table = source_table
        self._layout = layout
        self._table_of = table_of

    def compute(
        self, after: int, upto: TableVersion, joined_after: Joined, joined: Joined, deliver: Deliver
    ) -> SpeedPart:
        """The part from one state to another."""
        rows = self._source_table.rows(upto.version)
        with Scope(rows.sparkSession) as scope:
            changes = None
            if after < upto.version:
                changes = self._source_table.changes(after, upto.version)
            added = (changes if changes is not None else rows.limit(0)).where(
                f"{CHANGE} = '{INSERT}'" if changes is not None else "false"
            )
            added = added.drop(*CHANGE_COLUMNS)
            touched = self._touched(scope, after, upto, joined_after, joined, changes)
            frame = self._increments(scope, added, joined, touched)
            if touched is not None:
                frame = frame.unionByName(self._recomputed(scope, touched, rows, joined))
            return SpeedPart(self._layout, after, upto, deliver(frame), joined_after, joined)

    def of_rows(self, rows: DataFrame, joined: Joined, deliver: Callable[[DataFrame], T]) -> T:
        """Rows of the part for a version that adds exactly these rows."""
        with Scope(rows.sparkSession) as scope:  # rows of a batch belong to the session of their source
            return deliver(self._increments(scope, rows, joined, None))

    def _touched(
        self,
        scope: Scope,
        after: int,
        upto: TableVersion,
        joined_after: Joined,
        joined: Joined,
        changes: DataFrame | None,
    ) -> DataFrame | None:
        """Keys that must be recomputed; None if there are none. They stay on the executors."""
        found: list[DataFrame] = []
        if changes is not None and not self._source_table.only_adds(after, upto.version):
            other = changes.where(f"{CHANGE} <> '{INSERT}'").drop(*CHANGE_COLUMNS)
            found.append(self._keys(scope, other, joined_after))
            if joined != joined_after:
                found.append(self._keys(scope, other, joined))
        places = self._changed_places(scope, joined_after, joined)
        if places:
            for version, state in ((after, joined_after), (upto.version, joined)):
                affected = self._affected(scope, version, places)
                found.append(self._keys(scope, affected, state))
        if not found:
            return None
        touched = scope.keep(reduce(lambda left, right: left.union(right), found).distinct())
        number = touched.count()
        if not number:
            return None
        return touched.hint("broadcast") if number <= BROADCAST_KEYS_MAX else touched

    def _changed_places(self, scope: Scope, joined_after: Joined, joined: Joined) -> Mapping[str, str]:
        """Places of the changed rows of joined tables, by the names that the SQL uses."""
        found = {}
        for name in self._definition.lookups:
            table = self._computing.find(self._definition, name)
            before, now = joined_after.get(str(table), -1), joined.get(str(table), -1)
            if before != now:
                found[name] = scope.place(scope.keep(self._table_of(table).changed_rows(before, now)))
        return found

    def _affected(self, scope: Scope, version: int, places: Mapping[str, str]) -> DataFrame:
        """Rows of the view's table that match changed rows of joined tables."""
        star = self._definition.star
        assert star is not None
        rows = scope.place(self._source_table.rows(version))
        return scope.spark.sql(affected_sql(star, rows, places.get))

    def _keys(self, scope: Scope, rows: DataFrame, joined: Joined) -> DataFrame:
        view = self._computing.over(scope, self._definition, rows, joined)
        if self._definition.keys:
            return view.select(*(view[name].alias(TOUCHED + name) for name in self._definition.keys))
        # A view without keys has one row, which any of these rows changes.
        return rows.limit(1).selectExpr(f"true AS {TOUCHED}")

    def _increments(
        self, scope: Scope, rows: DataFrame, joined: Joined, touched: DataFrame | None
    ) -> DataFrame:
        view = self._computing.over(scope, self._definition, rows, joined)
        if touched is not None:
            view = view.join(touched, self._same(view, touched), "left_anti")
        return self._flagged(view, replaces=False)

    def _recomputed(self, scope: Scope, touched: DataFrame, rows: DataFrame, joined: Joined) -> DataFrame:
        """Touched keys as of the later state; those that have no rows any more are gone."""
        from pyspark.sql import functions as F

        view = self._computing.over(scope, self._definition, rows, joined)
        if not self._definition.keys:
            return self._flagged(view, replaces=True)
        there = view.join(touched, self._same(view, touched), "left_semi").withColumn("_there", F.lit(True))
        whole = touched.join(there, self._same(there, touched), "left")
        columns = [
            F.col(TOUCHED + name).alias(name) if name in self._definition.keys else there[name]
            for name in self._layout.schema.names
        ]
        return whole.select(*columns, F.lit(True).alias(REPLACES), F.col("_there").isNull().alias(GONE))

    def _same(self, view: DataFrame, touched: DataFrame) -> Column:
        """Whether a row has a touched key. Null is a key too."""
        from pyspark.sql import functions as F

        names = self._definition.keys
        if not names:
            return F.lit(True)
        pairs = [view[name].eqNullSafe(touched[TOUCHED + name]) for name in names]
        return reduce(lambda left, right: left & right, pairs)

    def _flagged(self, view: DataFrame, *, replaces: bool) -> DataFrame:
        from pyspark.sql import functions as F

        names = self._layout.schema.names
        return view.select(*names, F.lit(replaces).alias(REPLACES), F.lit(False).alias(GONE))
