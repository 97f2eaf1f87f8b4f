"""A snapshot: the rows of captured tables as one transaction sees them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.connect.connectors.debezium.envelope import Change, Row
from barnabas.connect.connectors.debezium.filters import Lists
from barnabas.connect.connectors.debezium.heartbeat import moved
from barnabas.connect.connectors.debezium.incremental import Incremental
from barnabas.connect.connectors.debezium.runs import bytes_max, row_batches
from barnabas.connect.connectors.debezium.snapshot_marks import Part, marked
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
        self._newest: int | None = None
        self._selects: dict[str, str] = {}

    def given(self) -> Iterator[Given]:
        """All rows. The last batch has the position of the stream."""
        task = self._task
        task.context.stopping.wait(self._settings.integer("snapshot.delay.ms") / 1000)
        with catalog.text_connection(task.conninfo) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            query = "SELECT pg_current_snapshot(), pg_current_wal_insert_lsn()"
            found = connection.execute(query).fetchone()
            assert found is not None
            seen = SeenTransactions.of(found[0], lsn_of(found[1]))
            waiting: Part | None = None
            done = 0
            unfinished = Place(self._lsn, self._lsn, snapshot="INITIAL")
            for part in self._rows(connection):
                if waiting is not None:
                    done += len(waiting.rows)
                    task.context.progress(done, None)
                    yield self._records(waiting, unfinished)
                waiting = part
            place = Place(self._lsn, self._lsn, seen=seen)
            task.set_place(place)
            if waiting is not None:
                task.context.progress(done + len(waiting.rows), done + len(waiting.rows))
                waiting.marks[-1] = "last"
                yield self._records(waiting, place)

    def again(self, state: Incremental) -> Iterator[Given]:
        """Rows of tables that a signal asks for. Changes that the stream is still to bring come behind. Until
        its end the offset has the tables: a snapshot that is cut begins again."""
        task, wanted = self._task, state.blocking
        place = task.place()
        with catalog.text_connection(self._task.conninfo) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            self._selects = wanted
            yield from (self._records(part, place) for part in self._rows(connection, tuple(wanted)))
        state.blocking = {}
        yield moved((task.partition, task.place().offset)), task.place()

    def _rows(self, connection: Any, names: Sequence[str] = ()) -> Iterator[Part]:
        chosen = Lists(names or self._settings.entries("snapshot.include.collection.list"))
        tables = []
        for schema, name in catalog.tables_of(self._task.sql, self._task.wanted):
            table = self._task.table(schema, name)
            if table is None or not table.schemas.fields or not chosen.wants(f"{schema}.{name}"):
                continue
            tables.append((table, self._batches(connection, table)))
        yield from marked(tables)

    def _batches(self, connection: Any, table: Table) -> Iterator[list[Row]]:
        from psycopg import sql

        names = [one.name for one in table.schemas.fields]
        given: sql.Composable = sql.Identifier(table.schema, table.name)
        if override := self._override(table.schema, table.name):
            given = sql.SQL("({}) AS chosen").format(sql.SQL(override))
        columns = sql.SQL(", ").join(sql.Identifier(each) for each in names)
        size = self._settings.integer("snapshot.fetch.size") or 1
        with connection.cursor(name="barnabas_snapshot") as cursor:
            cursor.execute(sql.SQL("SELECT {} FROM {}").format(columns, given))
            for rows in row_batches(cursor.fetchmany, size, bytes_max(self._settings)):
                yield [table.row(names, each) for each in rows]

    def _override(self, schema: str, name: str) -> str:
        """The statement of a signal or of `snapshot.select.statement.overrides` for a table."""
        if select := self._selects.get(f"{schema}.{name}"):
            return select.strip().rstrip(";")
        if f"{schema}.{name}" not in self._settings.entries("snapshot.select.statement.overrides"):
            return ""
        found = self._settings.raw.get(f"snapshot.select.statement.overrides.{schema}.{name}") or ""
        return found.strip().rstrip(";")

    def _records(self, part: Part, place: Place) -> Given:
        now_us = time.time_ns() // 1000
        source = self._task.source(part.table, now_us, place.event, self._xid(), "true")
        sources = {each: {**source, "snapshot": each} for each in set(part.marks)}
        changes = [
            Change("r", None, row, sources[mark]) for row, mark in zip(part.rows, part.marks, strict=True)
        ]
        positions = [(self._task.partition, place.offset)]
        return part.table.schemas.records(changes, time.time_ns(), positions), place

    def _xid(self) -> int:
        """The transaction that the source of all rows names: the newest one when the snapshot began."""
        if self._newest is None:
            query = "SELECT CASE WHEN pg_is_in_recovery() THEN 0 ELSE txid_current() END"
            self._newest = int(self._task.sql.execute(query).fetchone()[0])
        return self._newest
