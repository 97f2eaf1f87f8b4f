"""A snapshot: the rows of captured tables as one transaction sees them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from barnabas.connect.connectors.debezium.envelope import Change
from barnabas.connect.connectors.debezium.filters import Lists
from barnabas.connect.connectors.postgres_cdc import catalog
from barnabas.connect.connectors.postgres_cdc.capture import Table
from barnabas.connect.connectors.postgres_cdc.position import Place, SeenTransactions
from barnabas.connect.connectors.postgres_cdc.replication import lsn_of
from barnabas.connect.data import Records

if TYPE_CHECKING:
    from barnabas.connect.connectors.postgres_cdc.task import PostgresTask

Given = tuple[Records, Place]


class Snapshot:
    """One snapshot of a task. The slot exists before it begins."""

    def __init__(self, task: PostgresTask, slot_lsn: int) -> None:
        self._task = task
        self._lsn = slot_lsn
        self._settings = task.settings

    def given(self) -> Iterator[Given]:
        """All rows. The last batch has the position of the stream."""
        import psycopg

        task = self._task
        task.context.stopping.wait(self._settings.integer("snapshot.delay.ms") / 1000)
        with psycopg.connect(task.conninfo) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            query = "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text"
            found = connection.execute(query).fetchone()
            assert found is not None
            seen = SeenTransactions.of(found[0], lsn_of(found[1]))
            waiting: tuple[Table, list[tuple[Any, ...]]] | None = None
            done = 0
            unfinished = Place(self._lsn, self._lsn, snapshot="INITIAL")
            for table, rows in self._rows(connection):
                if waiting is not None:
                    done += len(waiting[1])
                    task.context.progress(done, None)
                    yield self._records(*waiting, unfinished, is_last=False)
                waiting = (table, rows)
            place = Place(self._lsn, self._lsn, seen=seen)
            task.set_place(place)
            if waiting is not None:
                task.context.progress(done + len(waiting[1]), done + len(waiting[1]))
                yield self._records(*waiting, place, is_last=True)

    def _rows(self, connection: Any) -> Iterator[tuple[Table, list[tuple[Any, ...]]]]:
        from psycopg import sql

        size = self._settings.integer("snapshot.fetch.size") or 1
        chosen = Lists(self._settings.entries("snapshot.include.collection.list"))
        for schema, name in catalog.tables_of(self._task.sql, self._task.wanted):
            table = self._task.table(schema, name)
            if table is None or not table.schemas.fields or not chosen.wants(f"{schema}.{name}"):
                continue
            names = [one.name for one in table.schemas.fields]
            parts = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(each)) for each in names)
            given: sql.Composable = sql.Identifier(schema, name)
            if override := self._override(schema, name):
                given = sql.SQL("({}) AS chosen").format(sql.SQL(override))
            with connection.cursor(name="barnabas_snapshot") as cursor:
                cursor.execute(sql.SQL("SELECT {} FROM {}").format(parts, given))
                while rows := cursor.fetchmany(size):
                    yield table, [table.row(names, each) for each in rows]

    def _override(self, schema: str, name: str) -> str:
        """The statement of `snapshot.select.statement.overrides` for a table."""
        if f"{schema}.{name}" not in self._settings.entries("snapshot.select.statement.overrides"):
            return ""
        found = self._settings.raw.get(f"snapshot.select.statement.overrides.{schema}.{name}") or ""
        return found.strip().rstrip(";")

    def _records(self, table: Table, rows: list[tuple[Any, ...]], place: Place, *, is_last: bool) -> Given:
        now_us = time.time_ns() // 1000
        source = self._task.source(table, now_us, place.event, None, "true")
        changes = [Change("r", None, row, source) for row in rows]
        if is_last:
            changes[-1] = changes[-1]._replace(source={**source, "snapshot": "last"})
        positions = [(self._task.partition, place.offset)]
        return table.schemas.records(changes, time.time_ns(), positions), place
