"""The task of the PostgreSQL connector: a snapshot, then the stream of the slot.

The slot's position moves only behind changes whose offsets are durable. A connection that breaks is opened
again at the last change that was returned.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from barnabas import __version__
from barnabas.connect.connectors.debezium.envelope import SNAPSHOT, Change, TableSchemas
from barnabas.connect.connectors.debezium.filters import topic_name
from barnabas.connect.connectors.postgres_cdc import catalog, pgoutput
from barnabas.connect.connectors.postgres_cdc.position import Place, Resume, Seen
from barnabas.connect.connectors.postgres_cdc.replication import ReplicationStream, lsn_of
from barnabas.connect.connectors.postgres_cdc.types import Modes, Read, typed
from barnabas.connect.data import (
    INT64,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    Column,
    Field,
    Records,
    Type,
    struct,
)
from barnabas.connect.plugins import ConnectError, Positions, RetriableError, SourceContext, SourceTask

log = logging.getLogger(__name__)
SOURCE = struct(
    {
        "version": STRING, "connector": STRING, "name": STRING, "ts_ms": INT64, "snapshot": SNAPSHOT,
        "db": STRING,
        "sequence": OPTIONAL_STRING, "ts_us": OPTIONAL_INT64, "ts_ns": OPTIONAL_INT64, "schema": STRING,
        "table": STRING, "txId": OPTIONAL_INT64, "lsn": OPTIONAL_INT64, "xmin": OPTIONAL_INT64,
    },
    name="io.debezium.connector.postgresql.Source",
)  # fmt: skip
ZEROS: dict[Type, Any] = {
    Type.STRING: "",
    Type.BYTES: b"",
    Type.BOOLEAN: False,
    Type.ARRAY: [],
    Type.MAP: [],
    Type.STRUCT: {"scale": 0, "value": b""},
}


class Table:
    """A captured table: its schemas, and how texts of its columns are read."""

    def __init__(
        self, schema: str, name: str, schemas: TableSchemas, readers: dict[str, Read], marker: str
    ) -> None:
        self.schema, self.name, self.schemas, self.readers = schema, name, schemas, readers
        self._marker = marker

    def row(
        self, names: list[str], values: Any, old: Any = None, *, keys_only: bool = False
    ) -> tuple[Any, ...]:
        """Texts of all columns of the table as values of the captured ones."""
        given = dict(zip(names, values, strict=True))
        before = dict(zip(names, old, strict=True)) if old is not None else {}
        row = []
        for one in self.schemas.fields:
            text = given.get(one.name)
            if text is pgoutput.UNCHANGED:
                text = before.get(one.name, pgoutput.UNCHANGED)
            if text is pgoutput.UNCHANGED or text is None:
                is_missing = text is pgoutput.UNCHANGED or (keys_only and one.name not in self.schemas.keys)
                row.append(self._absent(one, is_toast=text is pgoutput.UNCHANGED) if is_missing else None)
                continue
            try:
                row.append(self.readers[one.name](text))
            except (ValueError, ArithmeticError) as error:
                raise ConnectError(
                    f"{self.schema}.{self.name}: the column {one.name} has {text!r}: {error}"
                ) from error
        return tuple(row)

    def _absent(self, one: Field, *, is_toast: bool) -> Any:
        """What stands for a value that the log does not have."""
        if is_toast and one.schema.type is Type.STRING:
            return self._marker
        if is_toast and one.schema.type is Type.BYTES and one.schema.logical is None:
            return self._marker.encode()
        if one.schema.optional:
            return None
        if (one.schema.name or "").endswith("data.Decimal"):
            return Decimal(0)
        return ZEROS.get(one.schema.type, 0)


class PostgresTask(SourceTask):
    def start(self, context: SourceContext) -> None:
        self.context = context
        self._settings = context.settings
        self._prefix = context.settings.text("topic.prefix")
        self._partition = {"server": self._prefix}
        self._wanted = catalog.Wanted(context.settings)
        self._modes = Modes.of(context.settings)
        self._skipped = set(context.settings.entries("skipped.operations"))
        self._conninfo = catalog.conninfo(context.settings)
        self._sql: Any = None
        self._stream: ReplicationStream | None = None
        self._snapshot: Iterator[tuple[Records, Place]] | None = None
        self._was_always = False
        [offset] = context.offsets.read([self._partition])
        self._place = Place.of(offset) if offset else None
        self._returned = self._place  # behind the last batch that `poll` has returned
        self._durable = self._confirmed = 0
        self._flying: dict[str, Any] | None = None  # the offset of the last batch, until it is durable
        self._queue: deque[tuple[Records, Place]] = deque()
        self._run: list[Change] = []
        self._next_beat_s = self._next_report_s = 0.0

    def poll(self) -> Records | None:
        import psycopg

        try:
            if self._sql is None:
                self._open()
            if self._snapshot is not None:
                if (found := next(self._snapshot, None)) is not None:
                    return self._given(found)
                self._snapshot = None
            return self._given(self._read())
        except (psycopg.OperationalError, psycopg.InterfaceError, RetriableError) as error:
            self._close()
            raise RetriableError(f"{self._shown()}: {str(error).strip()}") from error
        except psycopg.Error as error:
            self._close()
            raise ConnectError(f"{self._shown()}: {str(error).strip()}") from error

    def _given(self, found: tuple[Records, Place] | None) -> Records | None:
        if found is None:
            return None
        records, self._returned = found
        self._flying = records.positions[-1][1]
        return records

    def _shown(self) -> str:
        text = self._settings.text
        where = f"{text('database.hostname')}:{self._settings.integer('database.port')}"
        return f"postgresql://{where}/{text('database.dbname')}, slot {text('slot.name')}"

    def commit(self, positions: Positions) -> None:
        for partition, offset in positions:
            if partition == self._partition:
                self._durable = max(self._durable, int(offset.get("lsn_commit", 0)))
                if offset == self._flying:
                    self._flying = None

    def stop(self) -> None:
        if self._settings.flag("slot.drop.on.stop") and self._sql is not None:
            if self._stream is not None:
                self._stream.close()
                self._stream = None
            self._sql.execute("SELECT pg_drop_replication_slot(%s)", (self._settings.text("slot.name"),))
        self._close()

    # -- opening -----------------------------------------------------------------------------------

    def _open(self) -> None:
        import psycopg

        self._sql = psycopg.connect(self._conninfo, autocommit=True)
        self._tables: dict[int, Table | None] = {}
        self._relations: dict[int, pgoutput.Relation] = {}
        self._run_table: Table | None = None
        self._begin: pgoutput.Begin | None = None
        catalog.ensure_publication(self._sql, self._settings, self._wanted)
        name = self._settings.text("slot.name")
        slot_lsn, is_new = catalog.ensure_slot(self._sql, name)
        mode = self._settings.text("snapshot.mode").lower()
        place = self._place
        if place is not None and not place.snapshot and is_new and mode not in ("always", "when_needed"):
            self._sql.execute("SELECT pg_drop_replication_slot(%s)", (name,))
            raise ConnectError(
                f"the slot {name} is gone, so changes since LSN {place.commit} are lost: take"
                " snapshot.mode=when_needed, or reset the offsets of this connector"
            )
        needed = (
            place is None or bool(place.snapshot) or is_new or (mode == "always" and not self._was_always)
        )
        if needed and mode not in ("no_data", "never"):
            self._was_always = True
            self._returned = self._place = Place(slot_lsn, slot_lsn, snapshot="INITIAL")
            self._snapshot = self._snapshots(slot_lsn)
        elif place is None:
            self._returned = self._place = Place(slot_lsn, slot_lsn)

    def _started(self) -> ReplicationStream:
        assert self._place is not None
        options = {"proto_version": "1", "publication_names": self._settings.text("publication.name")}
        self._resume = Resume(self._place)
        return ReplicationStream(
            self._conninfo, self._settings.text("slot.name"), self._place.commit, options
        )

    # -- tables ------------------------------------------------------------------------------------

    def _table(self, schema: str, name: str) -> Table | None:
        """A table as it is now; None if it is not captured."""
        if not self._wanted.table(schema, name):
            return None
        columns, keys = catalog.columns_of(self._sql, schema, name)
        found = {
            each.name: typed(each, self._modes)
            for each in columns
            if self._wanted.column(schema, name, each.name)
        }
        keys = self._own_keys(f"{schema}.{name}") or keys
        fields = tuple(Field(each, kind) for each, (kind, _) in found.items())
        schemas = TableSchemas(
            topic_name(self._prefix, schema, name, delimiter=self._settings.text("topic.delimiter")),
            fields,
            tuple(each for each in keys if each in found),
            SOURCE,
            self._settings.flag("tombstones.on.delete"),
        )
        readers = {each: read for each, (_, read) in found.items()}
        return Table(schema, name, schemas, readers, self._settings.text("unavailable.value.placeholder"))

    def _own_keys(self, table: str) -> list[str]:
        for part in self._settings.text("message.key.columns").split(";"):
            name, _, columns = part.strip().partition(":")
            if name == table:
                return [each.strip() for each in columns.split(",")]
        return []

    def _source(self, table: Table, time_us: int, lsn: int, xid: int | None, snapshot: str) -> dict[str, Any]:
        assert self._place is not None
        return {
            "version": __version__, "connector": "postgresql", "name": self._prefix, "ts_ms": time_us // 1000,
            "snapshot": snapshot, "db": self._settings.text("database.dbname"),
            "sequence": f'["{self._place.commit}","{lsn}"]', "ts_us": time_us, "ts_ns": time_us * 1000,
            "schema": table.schema, "table": table.name, "txId": xid, "lsn": lsn, "xmin": None,
        }  # fmt: skip

    # -- snapshot ----------------------------------------------------------------------------------

    def _snapshots(self, slot_lsn: int) -> Iterator[tuple[Records, Place]]:
        """All rows as one transaction sees them. The last batch has the position of the stream."""
        import psycopg

        self.context.stopping.wait(self._settings.integer("snapshot.delay.ms") / 1000)
        with psycopg.connect(self._conninfo) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            query = "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text"
            found = connection.execute(query).fetchone()
            assert found is not None
            seen = Seen.of(found[0], lsn_of(found[1]))
            waiting: tuple[Table, list[tuple[Any, ...]]] | None = None
            done = 0
            for table, rows in self._snapshot_rows(connection):
                if waiting is not None:
                    done += len(waiting[1])
                    self.context.progress(done, None)
                    yield self._snapshot_records(
                        *waiting, Place(slot_lsn, slot_lsn, snapshot="INITIAL"), is_last=False
                    )
                waiting = (table, rows)
            self._place = Place(slot_lsn, slot_lsn, seen=seen)
            if waiting is not None:
                self.context.progress(done + len(waiting[1]), done + len(waiting[1]))
                yield self._snapshot_records(*waiting, self._place, is_last=True)

    def _snapshot_rows(self, connection: Any) -> Iterator[tuple[Table, list[tuple[Any, ...]]]]:
        from psycopg import sql

        size = self._settings.integer("snapshot.fetch.size") or 1
        for schema, name in catalog.tables_of(self._sql, self._wanted):
            table = self._table(schema, name)
            if table is None or not table.schemas.fields:
                continue
            names = [one.name for one in table.schemas.fields]
            parts = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(each)) for each in names)
            statement = sql.SQL("SELECT {} FROM {}").format(parts, sql.Identifier(schema, name))
            with connection.cursor(name="barnabas_snapshot") as cursor:
                cursor.execute(statement)
                while rows := cursor.fetchmany(size):
                    yield table, [table.row(names, each) for each in rows]

    def _snapshot_records(
        self, table: Table, rows: list[tuple[Any, ...]], place: Place, *, is_last: bool
    ) -> tuple[Records, Place]:
        now_us = time.time_ns() // 1000
        source = self._source(table, now_us, place.event, None, "true")
        changes = [Change("r", None, row, source) for row in rows]
        if is_last:
            changes[-1] = changes[-1]._replace(source={**source, "snapshot": "last"})
        return table.schemas.records(changes, time.time_ns(), [(self._partition, place.offset)]), place

    # -- stream ------------------------------------------------------------------------------------

    def _read(self) -> tuple[Records, Place] | None:
        if self._settings.text("snapshot.mode").lower() == "initial_only":
            self.context.stopping.wait(self.context.poll_seconds)
            return None
        if self._stream is None:
            self._stream = self._started()
        until_s = time.monotonic() + self.context.poll_seconds
        while not self._queue and not self.context.stopping.is_set():
            self._report()
            frame = self._stream.read(0 if self._run else min(until_s - time.monotonic(), 0.2))
            if isinstance(frame, pgoutput.Frame):
                self._apply(frame)
            elif isinstance(frame, pgoutput.Keepalive):
                self._alive(frame)
            elif self._run:
                self._flush()
            elif time.monotonic() >= until_s:
                break
        return self._queue.popleft() if self._queue else None

    def _apply(self, frame: pgoutput.Frame) -> None:
        message = pgoutput.decode(frame.payload)
        place = self._place
        assert place is not None
        if isinstance(message, pgoutput.Begin):
            self._begin = message
        elif isinstance(message, pgoutput.Commit):
            self._begin = None
            self._resume.committed()
            self._place = place.after_commit(message.end_lsn, message.time_us)
        elif isinstance(message, pgoutput.Relation):
            self._flush()
            self._relations[message.oid] = message
            self._tables[message.oid] = self._table(message.schema, message.table)
        elif isinstance(message, pgoutput.RowChange | pgoutput.Truncate):
            begin = self._begin
            assert begin is not None, "changes are inside of transactions"
            was_sent = self._resume.was_sent(begin.xid, frame.lsn)
            if was_sent or (place.seen is not None and place.seen.has(begin.xid, begin.final_lsn)):
                return
            oids = message.oids if isinstance(message, pgoutput.Truncate) else (message.oid,)
            for oid in oids:
                self._change(oid, message, frame.lsn, begin)
            self._place = place.after_event(frame.lsn, begin.xid)

    def _change(
        self, oid: int, message: pgoutput.RowChange | pgoutput.Truncate, lsn: int, begin: pgoutput.Begin
    ) -> None:
        table = self._tables.get(oid)
        op = "t" if isinstance(message, pgoutput.Truncate) else message.op
        if table is None or op in self._skipped:
            return
        if self._run and (
            table is not self._run_table or len(self._run) >= self._settings.integer("max.batch.size")
        ):
            self._flush()
        self._run_table = table
        names = [each.name for each in self._relations[oid].columns]
        before = after = None
        if isinstance(message, pgoutput.RowChange):
            if message.old is not None:
                before = table.row(names, message.old, keys_only=message.old_is_key)
            if message.new is not None:
                old = None if message.old_is_key else message.old
                after = table.row(names, message.new, old)
        self._run.append(
            Change(op, before, after, self._source(table, begin.time_us, lsn, begin.xid, "false"))
        )

    def _flush(self) -> None:
        """The changes so far as one batch. Its position is behind the last of them."""
        if self._run and self._run_table is not None and self._place is not None:
            offset = self._place.offset
            positions = [(self._partition, offset)]
            made = self._run_table.schemas.records(self._run, time.time_ns(), positions)
            self._queue.append((made, self._place))
        self._run = []

    # -- feedback ----------------------------------------------------------------------------------

    def _alive(self, frame: pgoutput.Keepalive) -> None:
        """The server's place. If nothing of ours is under way, it needs no log before it."""
        is_idle = self._begin is None and not self._run and not self._queue and self._flying is None
        if (
            is_idle
            and self._place is not None
            and frame.lsn > self._place.commit
            and self._place.seen is None
        ):
            self._returned = self._place = self._place.after_commit(frame.lsn, self._place.time_us)
            self._durable = max(self._durable, frame.lsn)
        self._report(now=frame.wants_reply)
        self._beat()

    def _report(self, *, now: bool = False) -> None:
        """Tell the server what is durable, now and then: it ends connections that are silent."""
        if self._stream is None or not (now or time.monotonic() >= self._next_report_s):
            return
        self._next_report_s = time.monotonic() + min(
            self._settings.integer("status.update.interval.ms") / 1000, 10
        )
        self._confirmed = max(self._confirmed, self._durable)
        self._stream.confirm(self._confirmed, wants_reply=not now)

    def _beat(self) -> None:
        interval_s = self._settings.integer("heartbeat.interval.ms") / 1000
        if (
            not interval_s
            or self._begin is not None
            or time.monotonic() < self._next_beat_s
            or self._place is None
        ):
            return
        self._flush()
        self._next_beat_s = time.monotonic() + interval_s
        if query := self._settings.text("heartbeat.action.query"):
            self._sql.execute(query)
        topic = topic_name(self._settings.text("topic.heartbeat.prefix"), self._prefix)
        value = struct(name="io.debezium.connector.common.Heartbeat", ts_ms=INT64)
        key = struct(name="io.debezium.connector.common.ServerNameKey", serverName=STRING)
        beat = Records.of(
            topic,
            Column.of([{"ts_ms": time.time_ns() // 1_000_000}], value),
            Column.of([{"serverName": self._prefix}], key),
            positions=[(self._partition, self._place.offset)],
        )
        self._queue.append((beat, self._place))

    def _close(self) -> None:
        """Close connections. Changes that were not returned are read again."""
        if self._snapshot is not None:
            self._snapshot.close()  # type: ignore[attr-defined]  # a generator
        for each in (self._stream, self._sql):
            if each is not None:
                each.close()
        self._queue.clear()
        self._run = []
        self._place = self._returned
        self._stream = self._sql = self._snapshot = None
