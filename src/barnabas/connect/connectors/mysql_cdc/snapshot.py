"""A snapshot: the definitions of all tables, and the rows of captured ones, as one transaction sees them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from barnabas.connect.connectors.debezium.envelope import Change, Row
from barnabas.connect.connectors.debezium.filters import Lists, topic_name
from barnabas.connect.connectors.debezium.heartbeat import moved
from barnabas.connect.connectors.debezium.incremental import Incremental
from barnabas.connect.connectors.debezium.snapshot_marks import Part, marked
from barnabas.connect.connectors.mysql_cdc.capture import Table, source_of
from barnabas.connect.connectors.mysql_cdc.ddl_tokens import DdlError
from barnabas.connect.connectors.mysql_cdc.history import History
from barnabas.connect.connectors.mysql_cdc.position import Place
from barnabas.connect.connectors.mysql_cdc.schema_changes import schema_change
from barnabas.connect.connectors.mysql_cdc.server import SYSTEM, Server, quoted, selected
from barnabas.connect.data import Column, Records
from barnabas.connect.plugins import ConnectError

if TYPE_CHECKING:
    from barnabas.connect.connectors.mysql_cdc.task import MySqlTask

Given = tuple[Records, Place]


class Everything:
    """Chooses all tables that are not the server's own."""

    def table(self, database: str, name: str) -> bool:
        return database.lower() not in SYSTEM


class Snapshot:
    """One snapshot of a task. `rows`: with the rows of tables, or their definitions alone."""

    def __init__(self, task: MySqlTask, history: History, *, rows: bool) -> None:
        self._task = task
        self._history = history
        self._has_rows = rows
        self._settings = task.settings
        self._has_place = False
        self._selects: dict[str, str] = {}

    def given(self, recovered: Place | None) -> Iterator[Given]:
        """Batches with their places; the last one has the place of the stream. `recovered`: where the
        stream goes on if only the schema history was lost."""
        task, settings = self._task, self._settings
        task.context.stopping.wait(settings.integer("snapshot.delay.ms") / 1000)
        server = Server(settings)
        try:
            names = server.table_names(Everything())  # type: ignore[arg-type]
            captured = [each for each in names if task.wanted.table(*each)]
            locking = settings.text("snapshot.locking.mode").lower()
            place, lock = server.begin_snapshot(captured, locking)
            reached = recovered or place
            unfinished = replace(reached, snapshot="INITIAL")
            changes = self._definitions(server, names, reached)
            if locking != "extended":
                server.release(lock)
            if settings.flag("include.schema.changes") and recovered is None:
                yield from ((self._change(each, unfinished), unfinished) for each in changes)
            yield from self._rows(server, captured, reached, unfinished)
            server.end_snapshot()
        finally:
            server.close()
        task.set_place(reached)
        if not self._has_place:  # no row has carried the place: an empty batch does
            positions = [(task.partition, reached.offset)]
            yield Records.of(topic_name(task.prefix), Column.nulls(0), positions=positions), reached

    def again(self, state: Incremental) -> Iterator[Given]:
        """Rows of tables that a signal asks for. Changes that the stream is still to bring come behind. Until
        its end the offset has the tables: a snapshot that is cut begins again."""
        task, wanted = self._task, state.blocking
        place = task.place()
        server = Server(self._settings)
        self._selects = wanted
        try:
            server.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            server.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            names = server.table_names(self._task.wanted)
            for part in self._parts(server, names, tuple(wanted)):
                yield self._records(part, place)
        finally:
            server.close()
        state.blocking = {}
        yield moved((task.partition, task.place().offset)), task.place()

    def _definitions(self, server: Server, names: list[tuple[str, str]], place: Place) -> list[Any]:
        found = []
        for database, name in names:
            statement = server.statement_of(database, name)
            try:
                changes = self._task.tables.apply(statement, database)
            except DdlError as error:
                if self._task.wanted.table(database, name):
                    raise ConnectError(
                        f"the definition of {database}.{name} cannot be read: {error}"
                    ) from error
                continue
            self._history.write(place, database, statement, changes, snapshot=True)
            if self._task.wanted.table(database, name):
                found.append((database, name, statement, changes))
        return found

    def _source(self, place: Place, database: str, table: str, snapshot: str) -> dict[str, Any]:
        return source_of(
            self._task.NAME, self._settings, time_us=time.time_ns() // 1000, snapshot=snapshot,
            db=database, table=table, server_id=0, file=place.file, pos=place.pos,
        )  # fmt: skip

    def _change(self, given: Any, place: Place) -> Records:
        database, name, statement, changes = given
        return schema_change(
            self._task.NAME, topic_name(self._task.prefix), self._source(place, database, name, "true"),
            self._task.source_kind, statement, changes, time.time_ns() // 1_000_000,
            (self._task.partition, place.offset), self._task.headers,
        )  # fmt: skip

    def _rows(
        self, server: Server, captured: list[tuple[str, str]], reached: Place, unfinished: Place
    ) -> Iterator[Given]:
        waiting: Part | None = None
        done = 0
        for part in self._parts(server, captured):
            if waiting is not None:
                done += len(waiting.rows)
                self._task.context.progress(done, None)
                yield self._records(waiting, unfinished)
            waiting = part
        if waiting is not None:
            done += len(waiting.rows)
            self._task.context.progress(done, done)
            self._has_place = True
            self._task.set_place(reached)
            waiting.marks[-1] = "last"
            yield self._records(waiting, reached)

    def _parts(
        self, server: Server, captured: list[tuple[str, str]], wanted: Sequence[str] = ()
    ) -> Iterator[Part]:
        if not self._has_rows:
            return
        chosen = Lists(wanted or self._settings.entries("snapshot.include.collection.list"))
        tables = []
        for database, name in captured:
            if not chosen.wants(f"{database}.{name}"):
                continue
            table = self._task.table(database, name)
            if table is not None and table.schemas.fields:
                tables.append((table, self._batches(server, table)))
        yield from marked(tables)

    def _batches(self, server: Server, table: Table) -> Iterator[list[Row]]:
        size = self._settings.integer("snapshot.fetch.size") or 1
        database, name = table.definition.database, table.definition.name
        columns = ", ".join(selected(each) for each in table.definition.columns)
        statement = self._override(database, name) or (
            f"SELECT {columns} FROM {quoted(database)}.{quoted(name)}"
        )
        for rows in server.rows(statement, size):
            yield [row for each in rows if (row := table.row(tuple(each))) is not None]

    def _override(self, database: str, name: str) -> str:
        """The statement of a signal, or of `snapshot.select.statement.overrides`; it selects all columns."""
        if select := self._selects.get(f"{database}.{name}"):
            return select
        listed = self._settings.entries("snapshot.select.statement.overrides")
        if f"{database}.{name}" not in listed:
            return ""
        return self._settings.raw.get(f"snapshot.select.statement.overrides.{database}.{name}") or ""

    def _records(self, part: Part, place: Place) -> Given:
        definition = part.table.definition
        source = self._source(place, definition.database, definition.name, "true")
        sources = {each: {**source, "snapshot": each} for each in set(part.marks)}
        changes = [
            Change("r", None, row, sources[mark]) for row, mark in zip(part.rows, part.marks, strict=True)
        ]
        positions = [(self._task.partition, place.offset)]
        return part.table.schemas.records(changes, time.time_ns(), positions), place
