"""Incremental snapshots of MySQL and MariaDB: chunks read by key between two rows in the signal table.

In: rows of the signal table as the log has them, the state of the snapshot. Out: queries through the ordinary
connection, rows of chunks whose windows end. Does not know: the stream.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from barnabas.connect.connectors.debezium.envelope import Change
from barnabas.connect.connectors.debezium.heartbeat import moved
from barnabas.connect.connectors.debezium.incremental import Chunk, Incremental
from barnabas.connect.connectors.debezium.signals import CLOSE, OPEN, signal_of
from barnabas.connect.connectors.mysql_cdc.capture import Table, source_of
from barnabas.connect.connectors.mysql_cdc.server import Wanted, quoted, selected, text_of
from barnabas.connect.connectors.mysql_cdc.tables import ColumnDef
from barnabas.connect.data import Records
from barnabas.connect.plugins import RetriableError

if TYPE_CHECKING:
    from barnabas.connect.connectors.mysql_cdc.task import MySqlTask

log = logging.getLogger(__name__)
LOOKS_MAX, LOOK_PAUSE_S = 200, 0.05
EXACT = ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "DECIMAL", "YEAR", "FLOAT", "DOUBLE")
NUMBERED = ("ENUM", "SET", "BIT")  # ordered by their numbers
BYTES = ("BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB")
CHANGED = (1054, 1146)  # no such column, no such table


class AllColumns(Wanted):
    """The signal table is read as a whole, whatever is captured."""

    def column(self, database: str, table: str, name: str) -> bool:
        return True


class Chunks:
    """Reads chunks for a task, and knows the rows of its signal table."""

    def __init__(self, task: MySqlTask, state: Incremental) -> None:
        self._task = task
        self.state = state
        database, _, name = task.settings.text("signal.data.collection").rpartition(".")
        self.signal_table = (database, name) if name else None
        self._is_read_only = task.settings.flag("read.only")

    def is_signal(self, database: str, name: str) -> bool:
        return self.signal_table == (database, name)

    def signals(self) -> Table | None:
        """The signal table as it is at this place of the log."""
        assert self.signal_table is not None
        definition = self._task.tables.get(*self.signal_table)
        if definition is None:
            log.warning("the schema history does not know the signal table %s.%s", *self.signal_table)
            return None
        settings = self._task.settings
        return Table(
            definition, settings, AllColumns(settings), self._task.source_kind, self._task.telling, ()
        )

    def row(self, given: Mapping[str, Any]) -> tuple[Table, list[Change]] | None:
        """A row of the signal table. Out: the chunk whose window ends here, if one does."""
        name, kind = str(given.get("id")), str(given.get("type"))
        if kind == OPEN:
            self.state.opened(name.removesuffix("-open"))
            return None
        if kind == CLOSE:
            return self.closed(name.removesuffix("-close"))
        self.state.obey(signal_of(name, kind, given.get("data")))
        return None

    def closed(self, name: str) -> tuple[Table, list[Change]] | None:
        """Changes of the chunk whose window ends now."""
        chunk = self.state.closed(name)
        table = None if chunk is None else self._found(chunk.table)
        if chunk is None or table is None:
            return None
        source = source_of(
            self._task.NAME, self._task.settings, time_us=time.time_ns() // 1000, snapshot="incremental",
            db=table.definition.database, table=table.definition.name, server_id=0, file="", pos=0,
        )  # fmt: skip
        return table, [Change("r", None, row, source) for row in chunk.rows.values()]

    def records(self, found: tuple[Table, list[Change]] | None, position: Any) -> Records:
        """The rows of a chunk, or its place alone if changes have replaced all of them."""
        if found is None or not found[1]:
            return moved(position)
        table, changes = found
        return table.schemas.records(changes, time.time_ns(), [position])

    def _found(self, name: str) -> Table | None:
        database, _, table = name.rpartition(".")
        known = self._task.tables.get(database, table) is not None
        return self._task.table(database, table) if known else None

    def step(self) -> None:
        """Begin a blocking snapshot, or read the next chunk if none is under way."""
        import pymysql

        state = self.state
        if state.blocking:
            self._task.snapshot_again(state)
            return
        while state.is_active and state.chunk is None:
            name, condition = state.tables[0]
            can_read = self._is_read_only or self.signal_table is not None
            table = self._found(name) if can_read else None
            if table is None or not table.schemas.keys:
                reason = "has no key" if table is not None else "is not captured"
                reason = reason if can_read else "needs signal.data.collection or read.only"
                log.warning("%s %s: its incremental snapshot is left out", name, reason)
                state.next_table()
                continue
            try:
                has_more = self._read(table, condition)
            except pymysql.err.MySQLError as error:
                if not error.args or error.args[0] not in CHANGED:
                    raise
                log.warning("%s has changed (%s): its incremental snapshot is left out", name, error)
                has_more = False
            if not has_more:
                log.info("the incremental snapshot of %s is over", name)
                state.next_table()

    def _read(self, table: Table, condition: str | None) -> bool:
        """Read one chunk in its window. False if the table has no more rows."""
        state, definition = self.state, table.definition
        keys = [each for key in table.schemas.keys for each in definition.columns if each.name == key]
        order = ", ".join(quoted(each.name) for each in keys)
        texts = ", ".join(key_text(each) for each in keys)
        where = f"({condition.replace('%', '%%')})" if condition else "true"
        given = f"{quoted(definition.database)}.{quoted(definition.name)}"
        server = self._task.server
        if state.maximum is None:
            back = ", ".join(f"{quoted(each.name)} DESC" for each in keys)
            limit = f"SELECT {texts} FROM {given} WHERE {where} ORDER BY {back} LIMIT %s"
            found = server.all(limit, 1)
            if not found:
                return False
            state.maximum = [text_of(each) for each in found[0]]
        marks = ", ".join("%s" for _ in keys)
        bounds, values = f"({order}) <= ({marks})", key_values(keys, state.maximum)
        if state.last is not None:
            bounds = f"({order}) > ({marks}) AND {bounds}"
            values = [*key_values(keys, state.last), *values]
        columns = ", ".join(selected(each) for each in definition.columns)
        query = f"SELECT {texts}, {columns} FROM {given} WHERE {where} AND {bounds} ORDER BY {order} LIMIT %s"
        window = str(uuid4())
        values.append(self._task.settings.integer("incremental.snapshot.chunk.size"))
        end = None
        if self._is_read_only:
            rows, end = self._visible(query, values)
        else:
            self._mark(f"{window}-open", OPEN)
            rows = server.all(query, *values)
        if not rows:
            return False
        read = [row for each in rows if (row := table.row(each[len(keys) :])) is not None]
        by_key = {table.schemas.key_of(each): each for each in read}
        last = [text_of(each) for each in rows[-1][: len(keys)]]
        # The table has the name that changes have.
        state.chunk = Chunk(definition.id, by_key, last, end is not None, window, end)
        if end is None:
            self._mark(f"{window}-close", CLOSE)
        return True

    def _visible(self, query: str, values: list[Any]) -> tuple[list[Any], tuple[str, int]]:
        """Rows that have all that the stream has brought, and a place of the log behind them. The log tells a
        transaction a moment before queries see it."""
        server, place = self._task.server, self._task.place()
        for _ in range(LOOKS_MAX):
            if (found := server.look(query, values, place)) is not None:
                return found
            self._task.context.stopping.wait(LOOK_PAUSE_S)
        raise RetriableError("transactions of the stream are not visible to queries")

    def _mark(self, name: str, kind: str) -> None:
        assert self.signal_table is not None
        table = ".".join(quoted(each) for each in self.signal_table)
        self._task.server.all(f"INSERT INTO {table} (id, type, data) VALUES (%s, %s, NULL)", name, kind)


def key_text(column: ColumnDef) -> str:
    """A key as a text that `key_values` reads."""
    name = quoted(column.name)
    if column.type in BYTES:
        return f"HEX({name})"
    return f"CAST({name} + 0 AS CHAR)" if column.type in NUMBERED else f"CAST({name} AS CHAR)"


def key_values(columns: list[ColumnDef], texts: list[str]) -> list[Any]:
    """Keys for a comparison: numbers are compared as numbers."""
    found: list[Any] = []
    for column, text in zip(columns, texts, strict=True):
        if column.type in BYTES:
            found.append(bytes.fromhex(text))
        elif column.type in (*EXACT, *NUMBERED):
            found.append(Decimal(text))
        else:
            found.append(text)
    return found
