"""The task of the MySQL and MariaDB connectors: a snapshot, then the binary log.

A connection that breaks is opened again at the last change that was returned. Offsets name the last row
inside of a transaction, so that a restart neither repeats nor leaves out a change.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from barnabas.connect.connectors.debezium.context_headers import context_headers
from barnabas.connect.connectors.debezium.envelope import Change
from barnabas.connect.connectors.debezium.filters import topic_name
from barnabas.connect.connectors.debezium.heartbeat import heartbeat
from barnabas.connect.connectors.debezium.incremental import Incremental
from barnabas.connect.connectors.debezium.runs import Run, bytes_max
from barnabas.connect.connectors.debezium.signals import Channels
from barnabas.connect.connectors.debezium.told_columns import Telling
from barnabas.connect.connectors.debezium.transactions import Transactions
from barnabas.connect.connectors.mysql_cdc import binlog
from barnabas.connect.connectors.mysql_cdc.capture import Table, source_of, source_schema
from barnabas.connect.connectors.mysql_cdc.chunks import Chunks
from barnabas.connect.connectors.mysql_cdc.ddl import TableChange, Tables
from barnabas.connect.connectors.mysql_cdc.ddl_tokens import DdlError
from barnabas.connect.connectors.mysql_cdc.dump import BinlogStream, LogPurged
from barnabas.connect.connectors.mysql_cdc.history import History, store_of
from barnabas.connect.connectors.mysql_cdc.packed_values import Reader
from barnabas.connect.connectors.mysql_cdc.position import Place, purged, with_gtid
from barnabas.connect.connectors.mysql_cdc.row_values import images, readers_of
from barnabas.connect.connectors.mysql_cdc.schema_changes import schema_change
from barnabas.connect.connectors.mysql_cdc.server import Server, Wanted, server_id
from barnabas.connect.connectors.mysql_cdc.settings import RECOVERIES, WITHOUT_ROWS
from barnabas.connect.connectors.mysql_cdc.snapshot import Snapshot
from barnabas.connect.data import Records
from barnabas.connect.plugins import ConnectError, Positions, RetriableError, SourceContext, SourceTask

log = logging.getLogger(__name__)
FIRST_PLACE = 4
Given = tuple[Records, Place]


class MySqlTask(SourceTask):
    NAME: ClassVar[str] = "mysql"

    def start(self, context: SourceContext) -> None:
        self.context = context
        self.settings = context.settings
        self.prefix = context.settings.text("topic.prefix")
        self.partition = {"server": self.prefix}
        self.wanted = Wanted(context.settings)
        self.source_kind = source_schema(self.NAME)
        self._mode = context.settings.text("snapshot.mode").lower()
        self.telling = Telling(context.settings)
        self.headers = context_headers(context.settings, self.NAME, context.task)
        self._skipped = set(context.settings.entries("skipped.operations"))
        self._history: History | None = None
        self._server: Server | None = None
        self._stream: BinlogStream | None = None
        self._snapshot: Iterator[Given] | None = None
        self._had_snapshot = False
        self._channels: Channels | None = None
        [offset] = context.offsets.read([self.partition])
        self._place = Place.of(offset) if offset else None
        self._returned = self._place  # behind the last batch that `poll` has returned
        self._queue: deque[Given] = deque()
        self._run = Run(context.settings)
        self._next_beat_s = 0.0

    def poll(self) -> Records | None:
        import pymysql

        try:
            if self._server is None:
                self._open()
            if self._snapshot is not None:
                if (found := next(self._snapshot, None)) is not None:
                    return self._given(found)
                self._snapshot = None
            return self._given(self._read())
        except LogPurged as error:
            self._close()
            if self._mode not in ("when_needed", "always"):
                raise ConnectError(f"{self._shown()}: {purged(self._place)}: {error}") from error
            log.warning("%s: %s: a new snapshot begins: %s", self._shown(), purged(self._place), error)
            self._place = self._returned = None
            return None
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, RetriableError, OSError) as error:
            self._close()
            raise RetriableError(f"{self._shown()}: {error}") from error
        except pymysql.err.MySQLError as error:
            self._close()
            raise ConnectError(f"{self._shown()}: {error}") from error

    def _given(self, found: Given | None) -> Records | None:
        if found is None:
            return None
        records, self._returned = found
        return records

    def _shown(self) -> str:
        text = self.settings.text
        return f"{self.NAME}://{text('database.hostname')}:{self.settings.integer('database.port')}"

    def commit(self, positions: Positions) -> None:
        """The server keeps its log by its own rules."""

    def stop(self) -> None:
        self._close()
        if self._history is not None:
            self._history.close()
            self._history = None
        if self._channels is not None:
            self._channels.close()
            self._channels = None

    # -- opening -----------------------------------------------------------------------------------

    def _open(self) -> None:
        self._server = server = Server(self.settings)
        server.check()
        if self._history is None:
            self._history = History(store_of(self.settings), self.prefix)
        self.tables = Tables()
        server.prepare(self.tables)
        self._captured: dict[str, Table] = {}
        self._maps: dict[int, tuple[binlog.TableMap, Table | None, list[Reader]]] = {}
        if self._channels is None:
            self._channels = Channels(self.settings)
        place = self._place
        more = dict(place.more) if place is not None else {}
        self._chunks = Chunks(self, Incremental.of(more))
        self._transactions: Transactions | None = None
        if self.settings.flag("provide.transaction.metadata"):
            topic = topic_name(self.prefix, self.settings.text("topic.transaction"))
            self._transactions = Transactions(topic, more)
        if place is not None and not place.snapshot and not place.gtids and not server.has_log(place.file):
            raise LogPurged(f"{place.file} is not in SHOW BINARY LOGS")
        needed = place is None or bool(place.snapshot) or (self._mode == "always" and not self._had_snapshot)
        if needed and self._mode == "never":
            self._place = self._returned = Place(str(server.one("SHOW BINARY LOGS")[0]), FIRST_PLACE)
            needed = False
        elif not needed:
            assert place is not None
            if not self._history.recover(self.tables, place) and self._mode != "never":
                if self._mode not in (*RECOVERIES, "when_needed"):
                    raise ConnectError(
                        f"{self._shown()}: the schema history has nothing before {place.file}:{place.pos}:"
                        " take snapshot.mode=recovery if no table was changed since, or reset the offsets"
                    )
                needed = self._mode == "when_needed"
                if not needed:
                    self._snapshot = Snapshot(self, self._history, rows=False).given(place)
        if needed:
            self._had_snapshot = True
            rows = self._mode not in WITHOUT_ROWS
            self._snapshot = Snapshot(self, self._history, rows=rows).given(None)

    def _started(self) -> BinlogStream:
        assert self._server is not None and self._place is not None
        place = self._place
        self._file, self._gtid = place.file, ""
        self._reached = place.order
        self._thread: int | None = None
        self._time_us = 0
        self._resume_event, self._resume_row = place.event, place.row
        self._events = 0
        self._is_inside = False
        return BinlogStream(
            self._server.connect, server_id(self.settings, self.context.connector), place.file, place.pos,
            place.gtids, is_mariadb=self._server.is_mariadb, bytes_max=bytes_max(self.settings),
        )  # fmt: skip

    # -- tables ------------------------------------------------------------------------------------

    def table(self, database: str, name: str) -> Table | None:
        """A table as it is at this place of the log; None if it is not captured."""
        if not self.wanted.table(database, name):
            return None
        definition = self.tables.get(database, name)
        if definition is None:
            raise ConnectError(
                f"{self._shown()}: the schema history does not know the table {database}.{name}, which the"
                f" log at {self._file} changes: take snapshot.mode=recovery, or exclude the table"
            )
        found = self._captured.get(definition.id)
        if found is None or found.definition is not definition:
            found = self._captured[definition.id] = Table(
                definition, self.settings, self.wanted, self.source_kind, self.telling, self.headers
            )
        return found

    # -- stream ------------------------------------------------------------------------------------

    def _read(self) -> Given | None:
        if self._mode == "initial_only":
            self.context.stopping.wait(self.context.poll_seconds)
            return None
        if self._stream is None:
            self._stream = self._started()
        until_s = time.monotonic() + self.context.poll_seconds
        while not self._queue and not self.context.stopping.is_set():
            self._obey()
            if self._stream is None or self._queue:
                break  # a blocking snapshot begins, or signals are stored
            event = self._stream.read(0 if self._run else min(until_s - time.monotonic(), 0.2))
            if event is not None:
                self._apply(event)
            elif self._run:
                self._flush()
            else:
                self._beat()
                if time.monotonic() >= until_s:
                    break
        return self._queue.popleft() if self._queue else None

    def _obey(self) -> None:
        """Follow signals, and read the next chunk of an incremental snapshot."""
        assert self._channels is not None
        if signals := self._channels.read():
            for signal in signals:
                self._chunks.state.obey(signal)
            self._send(None)
            return  # topics and files tell them once: the offset has them before more happens
        if not self._is_inside:
            self._end_window()
            had_tables = bool(self._chunks.state.tables)
            self._chunks.step()
            if had_tables and not self._chunks.state.tables:
                self._send(None)

    def _end_window(self) -> None:
        """Send the rows of a chunk that was read without marks, when the stream is behind its query."""
        if (name := self._chunks.state.ended(self._reached)) is not None and not self._is_inside:
            self._send(self._chunks.closed(name))

    def _send(self, found: tuple[Table, list[Change]] | None) -> None:
        self._flush()
        place = self.place()
        self._queue.append((self._chunks.records(found, (self.partition, place.offset)), place))

    def place(self) -> Place:
        """The place with the states of transactions and of an incremental snapshot."""
        assert self._place is not None
        more = self._transactions.offset if self._transactions is not None else ()
        return replace(self._place, more=self._chunks.state.offset + more)

    @property
    def server(self) -> Server:
        assert self._server is not None, "the task is open"
        return self._server

    def _apply(self, event: binlog.Event) -> None:
        kind = event.kind
        if event.end:
            self._reached = self._file, event.end
        if kind == binlog.ROTATE:
            self._file = binlog.rotate_of(event).file
            self._maps.clear()
        elif kind in (*binlog.WRITES, *binlog.UPDATES, *binlog.DELETES):
            self._rows(event)
            self._events += 1
        elif kind == binlog.TABLE_MAP:
            self._map(event)
            self._events += 1
        elif kind in (binlog.GTID, binlog.TAGGED_GTID, binlog.ANONYMOUS_GTID):
            self._time_us = 0 if kind == binlog.TAGGED_GTID else binlog.commit_time_us(event)
            self._gtid = binlog.mysql_gtid(event) if kind == binlog.GTID else ""
        elif kind == binlog.MARIA_GTID:
            self._gtid, is_alone = binlog.maria_gtid(event)
            if not is_alone:
                self._begin(event)
        elif kind in (binlog.QUERY, 165):
            read = binlog.query_of if kind == binlog.QUERY else binlog.compressed_query
            self._query(event, read(event))
        elif kind in (binlog.XID, binlog.XA_PREPARE):
            self._commit(event)
        elif self._is_inside and event.end:
            self._events += 1

    def _begin(self, event: binlog.Event) -> None:
        assert self._place is not None
        self._flush()
        resumed = self._resume_event or self._resume_row
        if not resumed:
            self._place = self._place.begun(self._file, event.start)
        self._events = 1
        self._is_inside = True

    def _commit(self, event: binlog.Event) -> None:
        assert self._place is not None
        ended = None
        if self._transactions is not None and self._transactions.id is not None:
            self._flush()
            ended = self._transactions.end(event.timestamp_s * 1000)
        gtids = with_gtid(self._place.gtids, self._gtid)
        self._place = self._place.committed(self._file, event.end, gtids)
        self._resume_event = self._resume_row = self._events = 0
        self._is_inside = False
        self._gtid = ""
        if ended is not None and self._transactions is not None:
            place = self.place()
            self._queue.append((self._transactions.ended(ended, (self.partition, place.offset)), place))

    def _counted(self, table: Table, changes: list[Change], event: binlog.Event) -> list[Change]:
        """Changes with their places in their transaction, which begins with the first one."""
        if self._transactions is None or self._place is None or not changes:
            return changes
        if self._transactions.begins(self._gtid or f"file={self._place.file},pos={self._place.pos}"):
            place = self.place()
            made = self._transactions.begin(event.timestamp_s * 1000, (self.partition, place.offset))
            self._queue.append((made, place))
        return self._transactions.counted(table.definition.id, changes)

    def _query(self, event: binlog.Event, query: binlog.Query) -> None:
        word = query.statement.lstrip()[:12].upper()
        self._thread = query.thread if word == "BEGIN" else None
        self._time_us -= 0 if word == "BEGIN" else self._time_us % 1000  # statements: milliseconds
        if word == "BEGIN":
            if not self._is_inside:
                self._begin(event)
            else:
                self._events += 1
        elif word in ("COMMIT", "ROLLBACK"):
            self._commit(event)
        elif word.startswith(("SAVEPOINT", "ROLLBACK TO", "XA ")):
            self._events += 1
        else:
            self._statement(event, query)

    def _statement(self, event: binlog.Event, query: binlog.Query) -> None:
        """A statement that changes tables, or not."""
        assert self._history is not None and self._place is not None
        self._flush()
        try:
            changes = self.tables.apply(query.statement, query.database)
        except DdlError as error:
            raise ConnectError(f"{self._shown()}: {self._file}:{event.start}: {error}") from error
        gtid = self._gtid
        if not self._is_inside:
            self._commit(event)
        else:
            self._events += 1
        if not changes:
            return
        self._gtid = gtid
        self._history.write(self._place, query.database, query.statement, changes)
        self._changed(event, query, changes)
        self._maps.clear()
        for each in changes:
            if each.kind == "TRUNCATE" and "t" not in self._skipped and each.table is not None:
                self._truncated(event, each)
        self._gtid = gtid if self._is_inside else ""

    def _changed(self, event: binlog.Event, query: binlog.Query, changes: list[TableChange]) -> None:
        assert self._place is not None
        if not self.settings.flag("include.schema.changes"):
            return
        if changes[0].kind == "TRUNCATE" or not any(
            self.wanted.table(each.database, each.name) for each in changes
        ):
            return
        made = schema_change(
            self.NAME, topic_name(self.prefix), self._source(event, query.database, changes[-1].name, 0),
            self.source_kind, query.statement, changes, time.time_ns() // 1_000_000,
            (self.partition, self.place().offset), self.headers,
        )  # fmt: skip
        self._queue.append((made, self.place()))

    def _truncated(self, event: binlog.Event, change: TableChange) -> None:
        table = self.table(change.database, change.name)
        if table is not None:
            truncated = Change("t", None, None, self._source(event, change.database, change.name, 0))
            self._run.add(table.schemas, [truncated], 0)
            self._flush()

    def _map(self, event: binlog.Event) -> None:
        mapped = binlog.table_map_of(event)
        known = self._maps.get(mapped.table_id)
        if known is not None and known[0] == mapped:
            return
        table = self.table(mapped.database, mapped.table)
        if table is None and self._chunks.is_signal(mapped.database, mapped.table):
            table = self._chunks.signals()
        readers: list[Reader] = []
        if table is not None:
            try:
                readers = readers_of(mapped, table.definition.columns)
            except ValueError as error:
                raise ConnectError(f"{self._shown()}: {self._file}:{event.start}: {error}") from error
        self._maps[mapped.table_id] = mapped, table, readers

    def _rows(self, event: binlog.Event) -> None:
        found = binlog.rows_of(event)
        mapped, table, readers = self._maps.get(found.table_id, (None, None, []))
        if mapped is None or table is None or self._events < self._resume_event:
            return
        is_signal = self._chunks.is_signal(mapped.database, mapped.table)
        if is_signal and found.op == "c":
            self._signals(event, table, list(images(found, mapped, readers)))
        if found.op in self._skipped or (is_signal and not self.wanted.table(mapped.database, mapped.table)):
            return
        first = self._resume_row if self._events == self._resume_event else 0
        rows = list(images(found, mapped, readers))
        for number, (before, after) in enumerate(rows):
            if number < first:
                continue
            if not self._run.takes(table.schemas):
                self._flush()
            source = self._source(event, mapped.database, mapped.table, number)
            change = Change(found.op, table.row(before), table.row(after), source)
            for row in (change.before, change.after):
                if row is not None:
                    self._chunks.state.touched(table.definition.id, table.schemas.key_of(row))
            changes = self._counted(table, table.schemas.expanded(change), event)
            if changes:
                self._run.add(table.schemas, changes, len(event.body) // len(rows))
            self._place = self._after(event, number, len(rows))

    def _after(self, event: binlog.Event, number: int, count: int) -> Place:
        """The place behind a row of an event."""
        assert self._place is not None
        place = replace(self._place, time_s=event.timestamp_s, server_id=event.server_id)
        return place.after_row(self._events, number + 1, is_last=number + 1 == count)

    def _signals(self, event: binlog.Event, table: Table, rows: list[Any]) -> None:
        """Rows of the signal table: wishes of users, and edges of windows."""
        assert self._place is not None
        self._flush()
        names = [one.name.lower() for one in table.schemas.fields]
        first = self._resume_row if self._events == self._resume_event else 0
        for number, (_, after) in enumerate(rows):
            row = table.row(after)
            if number < first or row is None:
                continue
            found = self._chunks.row(dict(zip(names, row, strict=True)))
            if found is None or not found[1]:
                continue
            # Behind this row, so that a restart does not look for the end of a window that it has seen.
            self._place = self._after(event, number, len(rows))
            self._send(found)

    def _source(self, event: binlog.Event, database: str, table: str, row: int) -> dict[str, Any]:
        return source_of(
            self.NAME, self.settings, time_us=self._time_us or event.timestamp_s * 1_000_000,
            snapshot="false", db=database, table=table, server_id=event.server_id, gtid=self._gtid or None,
            file=self._file, pos=event.start, row=row, thread=self._thread,
        )  # fmt: skip

    def _flush(self) -> None:
        """The changes so far as one batch. Its position is behind the last of them."""
        run = self._run
        if run.schemas is not None and self._place is not None:
            place = self.place()
            made = run.schemas.records(run.changes, time.time_ns(), [(self.partition, place.offset)])
            self._queue.append((made, place))
        run.clear()

    def _beat(self) -> None:
        interval_s = self.settings.integer("heartbeat.interval.ms") / 1000
        if not interval_s or self._is_inside or time.monotonic() < self._next_beat_s or self._place is None:
            return
        self._next_beat_s = time.monotonic() + interval_s
        if (query := self.settings.text("heartbeat.action.query")) and self._server is not None:
            self._server.execute(query)
        topic = topic_name(self.settings.text("topic.heartbeat.prefix"), self.prefix)
        place = self.place()
        self._queue.append((heartbeat(topic, self.prefix, (self.partition, place.offset)), place))

    def snapshot_again(self, state: Incremental) -> None:
        """Begin a snapshot of some tables between two transactions; the stream goes on behind it."""
        self._flush()
        if not self._queue and self._stream is not None and self._history is not None:
            self._stream.close()
            self._stream = None
            self._snapshot = Snapshot(self, self._history, rows=True).again(state)

    def set_place(self, place: Place) -> None:
        """A snapshot says where the stream goes on."""
        self._place = place

    def _close(self) -> None:
        """Close connections. Changes that were not returned are read again."""
        if self._snapshot is not None:
            self._snapshot.close()  # type: ignore[attr-defined]  # a generator
        for each in (self._stream, self._server):
            if each is not None:
                each.close()
        self._queue.clear()
        self._run.clear()
        self._place = self._returned
        self._stream = self._server = self._snapshot = None


class MariaDbTask(MySqlTask):
    NAME: ClassVar[str] = "mariadb"
