"""Incremental snapshots of PostgreSQL: chunks read by key between two rows in the signal table."""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from barnabas.connect.connectors.debezium.envelope import Change
from barnabas.connect.connectors.debezium.incremental import Chunk, Incremental
from barnabas.connect.connectors.debezium.signals import CLOSE, OPEN, signal_of
from barnabas.connect.connectors.postgres_cdc.capture import Table
from barnabas.connect.connectors.postgres_cdc.catalog import end_of_log
from barnabas.connect.connectors.postgres_cdc.position import SeenTransactions
from barnabas.connect.plugins import RetriableError

if TYPE_CHECKING:
    from barnabas.connect.connectors.postgres_cdc.task import PostgresTask

log = logging.getLogger(__name__)
STREAMED_MAX = 1000
LOOKS_MAX, LOOK_PAUSE_S = 200, 0.05


class Chunks:
    """Reads chunks for a task, and knows the rows of its signal table."""

    def __init__(self, task: PostgresTask, state: Incremental) -> None:
        self._task = task
        self.state = state
        schema, _, name = task.settings.text("signal.data.collection").rpartition(".")
        self.signal_table = (schema or "public", name) if name else None
        self._is_read_only = task.settings.flag("read.only")
        self.streamed: deque[int] = deque(maxlen=STREAMED_MAX)  # the last transactions of the stream

    def is_signal(self, schema: str, name: str) -> bool:
        return self.signal_table == (schema, name)

    def row(self, names: list[str], values: Any) -> list[Change] | None:
        """A row of the signal table. Out: changes of the chunk whose window ends here, if one does."""
        given = dict(zip([each.lower() for each in names], values, strict=True))
        name, kind = str(given.get("id")), str(given.get("type"))
        if kind == OPEN:
            self.state.opened(name.removesuffix("-open"))
            return None
        if kind == CLOSE:
            return self.closed(name.removesuffix("-close"))
        self.state.obey(signal_of(name, kind, given.get("data")))
        return None

    def closed(self, name: str) -> list[Change] | None:
        """Changes of the chunk whose window ends now."""
        chunk = self.state.closed(name)
        if chunk is None:
            return None
        table = self._found(chunk.table)
        if table is None:
            return None
        now_us = time.time_ns() // 1000
        source = self._task.source(table, now_us, 0, None, "incremental")
        return [Change("r", None, row, source) for row in chunk.rows.values()]

    def _found(self, name: str) -> Table | None:
        schema, _, table = name.rpartition(".")
        return self._task.table(schema or "public", table)

    def table_of(self, name: str) -> Table:
        found = self._found(name)
        assert found is not None, "a chunk is read of captured tables only"
        return found

    def step(self) -> None:
        """Begin a blocking snapshot, or read the next chunk if none is under way."""
        state = self.state
        if state.blocking:
            self._task.snapshot_again(state)
            return
        while state.is_active and state.chunk is None:
            name, condition = state.tables[0]
            if self.signal_table is None and not self._is_read_only:
                text = "the snapshot of %s is left out: it needs signal.data.collection or read.only"
                log.warning(text, name)
                state.next_table()
                continue
            table = self._found(name)
            if table is None or not table.schemas.keys:
                reason = "is not captured" if table is None else "has no key"
                log.warning("%s %s: its incremental snapshot is left out", name, reason)
                state.next_table()
                continue
            if not self._read(name, table, condition):
                log.info("the incremental snapshot of %s is complete", name)
                state.next_table()

    def _read(self, name: str, table: Table, condition: str | None) -> bool:
        """Read one chunk in its window. False if the table has no more rows."""
        from psycopg import sql

        state, keys = self.state, table.schemas.keys
        names = [one.name for one in table.schemas.fields]
        parts = sql.SQL(", ").join(sql.Identifier(each) for each in names)
        order = sql.SQL(", ").join(sql.Identifier("chosen", each) for each in keys)
        back = sql.SQL(", ").join(sql.SQL("{} DESC").format(sql.Identifier("chosen", each)) for each in keys)
        given = sql.SQL("{} AS chosen").format(sql.Identifier(table.schema, table.name))
        key_texts = sql.SQL(", ").join(sql.Identifier(each) for each in keys)
        where = sql.SQL("({})").format(sql.SQL(condition)) if condition else sql.SQL("true")
        if state.maximum is None:
            query = sql.SQL("SELECT {} FROM {} WHERE {} ORDER BY {} LIMIT 1").format(
                key_texts, given, where, back
            )
            found = self._task.texts.execute(query).fetchone()
            if found is None:
                return False
            state.maximum = list(found)
        values = list(state.maximum)
        marks = sql.SQL(", ").join([sql.Placeholder()] * len(keys))
        bounds = sql.SQL("({}) <= ({})").format(order, marks)
        if state.last is not None:
            bounds = sql.SQL("({}) > ({}) AND ").format(order, marks) + bounds
            values = [*state.last, *values]
        query = sql.SQL("SELECT {}, {} FROM {} WHERE {} AND {} ORDER BY {} LIMIT {}").format(
            key_texts, parts, given, where, bounds, order,
            sql.Literal(self._task.settings.integer("incremental.snapshot.chunk.size")),
        )  # fmt: skip
        window = str(uuid4())[:36]
        if self._is_read_only:
            rows = self._visible(query, values)
        else:
            self._mark(f"{window}-open", OPEN)
            rows = self._task.texts.execute(query, values).fetchall()
        if not rows:
            return False
        read = [table.row(names, each[len(keys) :]) for each in rows]
        by_key = {table.schemas.key_of(each): each for each in read}
        state.chunk = Chunk(name, by_key, [str(each) for each in rows[-1][: len(keys)]], name=window)
        if self._is_read_only:
            state.chunk.is_open, state.chunk.end = True, end_of_log(self._task.sql)
            self._task.ask_progress()
        else:
            self._mark(f"{window}-close", CLOSE)
        return True

    def _visible(self, query: Any, values: Any) -> list[Any]:
        """Rows that have all that the stream has brought: the log tells a transaction a moment before queries
        see it."""
        texts = self._task.texts
        for _ in range(LOOKS_MAX):
            texts.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                seen = SeenTransactions.of(texts.execute("SELECT pg_current_snapshot()").fetchone()[0], 0)
                if all(seen.has(each, 0) for each in self.streamed):
                    return list(texts.execute(query, values).fetchall())
            finally:
                texts.execute("ROLLBACK")
            self._task.context.stopping.wait(LOOK_PAUSE_S)
        raise RetriableError("transactions of the stream are not visible to queries")

    def _mark(self, name: str, kind: str) -> None:
        from psycopg import sql

        assert self.signal_table is not None
        statement = sql.SQL("INSERT INTO {} (id, type, data) VALUES (%s, %s, NULL)")
        self._task.sql.execute(statement.format(sql.Identifier(*self.signal_table)), (name, kind))
