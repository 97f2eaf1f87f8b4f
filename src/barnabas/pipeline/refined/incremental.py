"""Increments of a refined table: the rows and groups that changes of its inputs touch, and one commit.

In: the table's SQL, and its inputs at two states. Out: a commit that leads from what the SQL gave for the
first state to what it gives for the second. Changed rows of the first table, and rows of it that match
changed rows of joined tables, are all that can give other results. Executors compute everything. Does not
know: schedules, locks, which states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from barnabas.pipeline.increments.scopes import Scope
from barnabas.pipeline.increments.source_table import CHANGE, CHANGE_COLUMNS, INSERT, SourceTable
from barnabas.pipeline.lake import commits
from barnabas.pipeline.spec import refined_sql
from barnabas.pipeline.spec.model import Refined
from barnabas.pipeline.spec.star import Star, affected_sql
from barnabas.pipeline.spec.update_mode import Update, UpdateMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY = "_key_"
OP, NET, COUNT, THERE = "_op", "_net", "_count", "_there"
ADDS, REMOVES = "i", "d"
AFTER_IMAGES = f"{CHANGE} IN ('{INSERT}', 'update_postimage')"
BEFORE_IMAGES = f"{CHANGE} IN ('delete', 'update_preimage')"

Versions = Mapping[str, int]  # by the name that the SQL uses


@dataclass(frozen=True, slots=True)
class Target:
    """The table that is updated, and the commit's id and metadata."""

    path: str
    txn: commits.Txn
    metadata: str


class Incremental:
    """One increment of one table."""

    def __init__(
        self,
        scope: Scope,
        refined: Refined,
        update: Update,
        tables: Mapping[str, SourceTable],
        before: Versions,
        now: Versions,
    ) -> None:
        assert update.star is not None
        self._scope = scope
        self._refined = refined
        self._update = update
        self._star: Star = update.star
        self._tables = tables
        self._before = before
        self._now = now
        self._changed = self._places_of_changes()

    def commit(self, target: Target) -> None:
        """Bring the table to the later state."""
        if self._update.mode is UpdateMode.GROUPS:
            self._groups(target)
        else:
            self._rows(target)

    # -- what changed ------------------------------------------------------------------------------

    @property
    def _first(self) -> SourceTable:
        return self._tables[self._star.name]

    def _places_of_changes(self) -> dict[str, str]:
        """Changed rows of joined tables."""
        found = {}
        for each in self._star.joined:
            after, upto = self._before[each.name], self._now[each.name]
            if after != upto:
                rows = self._tables[each.name].changed_rows(after, upto)
                found[each.name] = self._scope.place(self._scope.keep(rows))
        return found

    def _changes(self) -> DataFrame | None:
        after, upto = self._before[self._star.name], self._now[self._star.name]
        return None if after == upto else self._first.changes(after, upto)

    def _only_adds(self) -> bool:
        after, upto = self._before[self._star.name], self._now[self._star.name]
        return not self._changed and bool(self._first.only_adds(after, upto))

    def _affected(self, rows: DataFrame) -> DataFrame:
        """Rows of the first table that match changed rows of joined tables."""
        return self._scope.spark.sql(affected_sql(self._star, self._scope.place(rows), self._changed.get))

    def _unaffected(self, rows: DataFrame) -> DataFrame:
        if not self._changed:
            return rows
        name = self._scope.place(rows)
        matching = affected_sql(self._star, name, self._changed.get).partition(" WHERE ")[2]
        alias = self._star.alias
        return self._scope.spark.sql(f"SELECT `{alias}`.* FROM {name} AS `{alias}` WHERE NOT ({matching})")

    def _query(self, rows: DataFrame, versions: Versions, sql: str | None = None) -> DataFrame:
        """The SQL over rows of the first table, and joined tables at their versions."""
        names = {self._star.name: self._scope.place(rows)}
        for each in self._star.joined:
            names[each.name] = self._scope.place(self._tables[each.name].rows(versions[each.name]))
        return self._scope.spark.sql(refined_sql.with_names(sql or self._refined.sql, names))

    # -- groups ------------------------------------------------------------------------------------

    def _groups(self, target: Target) -> None:
        changes = self._changes()
        if changes is not None and self._update.merged_by and self._only_adds():
            added = changes.where(f"{CHANGE} = '{INSERT}'").drop(*CHANGE_COLUMNS)
            self._merge_groups(self._query(added, self._now), target)
            return
        touched = self._touched(changes)
        whole = self._query(self._first.rows(self._now[self._star.name]), self._now)
        self._replace_groups(touched, whole, target)

    def _touched(self, changes: DataFrame | None) -> DataFrame:
        """Keys of groups that may have changed, whether or not HAVING shows them."""
        sql = refined_sql.without_having(self._refined.sql)
        found: list[DataFrame] = []
        states = [(self._before, BEFORE_IMAGES), (self._now, AFTER_IMAGES)]
        for versions, images in states:
            if changes is not None:
                rows = changes.where(images).drop(*CHANGE_COLUMNS)
                found.append(self._keys(self._query(rows, versions, sql)))
            if self._changed:
                rows = self._affected(self._first.rows(versions[self._star.name]))
                found.append(self._keys(self._query(rows, versions, sql)))
        return self._scope.keep(reduce(lambda left, right: left.union(right), found).distinct())

    def _keys(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        if not self._update.keys:
            return frame.limit(1).select(F.lit(True).alias(KEY))
        return frame.select(*(frame[name].alias(KEY + name) for name in self._update.keys))

    def _replace_groups(self, touched: DataFrame, whole: DataFrame, target: Target) -> None:
        from pyspark.sql import functions as F

        def same(frame: DataFrame) -> object:
            pairs = [frame[name].eqNullSafe(touched[KEY + name]) for name in self._update.keys]
            return reduce(lambda left, right: left & right, pairs) if pairs else F.lit(True)

        there = whole.join(touched, same(whole), "left_semi").withColumn(THERE, F.lit(True))  # type: ignore[arg-type]
        source = touched.join(there, same(there), "left")  # type: ignore[arg-type]
        names = whole.columns
        name = self._scope.place(source)
        on = " AND ".join(f"t.`{key}` <=> s.`{KEY}{key}`" for key in self._update.keys) or "true"
        equal = " AND ".join(f"t.`{each}` <=> s.`{each}`" for each in names)
        self._run(
            f"""MERGE INTO delta.`{target.path}` t USING {name} s ON {on}
            WHEN MATCHED AND s.{THERE} IS NULL THEN DELETE
            WHEN MATCHED AND NOT ({equal}) THEN UPDATE SET {assigned(names)}
            WHEN NOT MATCHED AND s.{THERE} THEN INSERT ({listed(names)}) VALUES ({listed(names, "s")})""",
            target,
        )

    def _merge_groups(self, added: DataFrame, target: Target) -> None:
        on = " AND ".join(f"t.`{key}` <=> s.`{key}`" for key in self._update.keys)
        merged = ", ".join(f"t.`{name}` = {merge(how, name)}" for name, how in self._update.merged_by.items())
        names = added.columns
        self._run(
            f"""MERGE INTO delta.`{target.path}` t USING {self._scope.place(added)} s ON {on}
            {f"WHEN MATCHED THEN UPDATE SET {merged}" if merged else ""}
            WHEN NOT MATCHED THEN INSERT ({listed(names)}) VALUES ({listed(names, "s")})""",
            target,
        )

    # -- rows --------------------------------------------------------------------------------------

    def _rows(self, target: Target) -> None:
        changes = self._changes()
        if changes is not None and self._only_adds():
            added = changes.where(f"{CHANGE} = '{INSERT}'").drop(*CHANGE_COLUMNS)
            rows = self._query(added, self._now)
            commits.append(rows, target.path, target.txn, metadata=target.metadata)
            return
        removed = self._given(changes, BEFORE_IMAGES, self._before)
        added = self._given(changes, AFTER_IMAGES, self._now)
        self._exchange(removed, added, target)

    def _given(self, changes: DataFrame | None, images: str, versions: Versions) -> DataFrame:
        """Rows of the result that changed and affected rows give in one of the two states."""
        parts: list[DataFrame] = []
        if changes is not None:
            rows = changes.where(images).drop(*CHANGE_COLUMNS)
            parts.append(self._query(self._unaffected(rows), versions))
        if self._changed:
            rows = self._affected(self._first.rows(versions[self._star.name]))
            parts.append(self._query(rows, versions))
        return reduce(lambda left, right: left.union(right), parts)

    def _exchange(self, removed: DataFrame, added: DataFrame, target: Target) -> None:
        """Remove and add rows, each as often as it was given. Equal rows cannot be told apart, so all of
        them are deleted and those that stay are inserted again."""
        from pyspark.sql import functions as F

        names = added.columns
        signed = added.withColumn(NET, F.lit(1)).union(removed.withColumn(NET, F.lit(-1)))
        net = signed.groupBy(*names).agg(F.sum(NET).alias(NET)).where(f"{NET} <> 0")
        net_name = self._scope.place(self._scope.keep(net))
        sql = self._scope.spark.sql
        same = " AND ".join(f"t.`{name}` <=> n.`{name}`" for name in names)
        there = self._scope.place(
            sql(
                f"""SELECT {listed(names, "n")}, n.{NET}, count(t.{THERE}) AS {COUNT} FROM {net_name} n
                LEFT JOIN (SELECT *, true AS {THERE} FROM delta.`{target.path}`) t
                ON n.{NET} < 0 AND {same} GROUP BY ALL"""
            )
        )
        copies = f"CASE WHEN {NET} > 0 THEN {NET} ELSE {COUNT} + {NET} END"
        source = self._scope.place(
            sql(
                f"""SELECT {listed(names)}, '{REMOVES}' AS {OP} FROM {there} WHERE {NET} < 0 UNION ALL
                SELECT {listed(names)}, '{ADDS}' AS {OP} FROM (SELECT *, explode(sequence(1L, {copies}))
                FROM {there} WHERE {copies} > 0)"""
            )
        )
        matched = " AND ".join(f"t.`{name}` <=> s.`{name}`" for name in names)
        self._run(
            f"""MERGE INTO delta.`{target.path}` t USING {source} s ON s.{OP} = '{REMOVES}' AND {matched}
            WHEN MATCHED THEN DELETE
            WHEN NOT MATCHED AND s.{OP} = '{ADDS}' THEN INSERT ({listed(names)})
            VALUES ({listed(names, "s")})""",
            target,
        )

    def _run(self, statement: str, target: Target) -> None:
        spark = self._scope.spark
        spark.conf.set(commits.METADATA_CONF, target.metadata)
        try:
            with commits.as_transaction(spark, target.txn):
                spark.sql(statement)
        finally:
            spark.conf.unset(commits.METADATA_CONF)


def merge(how: str, name: str) -> str:
    """The merged value of a column of table `t` and increment `s`; null is no value."""
    if how == "sum":
        return f"CASE WHEN t.`{name}` IS NULL THEN s.`{name}` ELSE t.`{name}` + coalesce(s.`{name}`, 0) END"
    return f"{how}(t.`{name}`, s.`{name}`)"


def listed(names: list[str], table: str = "") -> str:
    return ", ".join(f"{table}.`{name}`" if table else f"`{name}`" for name in names)


def assigned(names: list[str]) -> str:
    return ", ".join(f"t.`{name}` = s.`{name}`" for name in names)
