"""The task of the PostgreSQL connector: a snapshot, then the stream of the slot.

The slot's position moves only behind changes whose offsets are durable. A connection that breaks is opened
again at the last change that was returned.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from barnabas import __version__
from barnabas.connect.connectors.debezium.envelope import Change, TableSchemas
from barnabas.connect.connectors.debezium.filters import Lists, topic_name
from barnabas.connect.connectors.debezium.heartbeat import heartbeat, moved
from barnabas.connect.connectors.debezium.incremental import Incremental
from barnabas.connect.connectors.debezium.runs import Run
from barnabas.connect.connectors.debezium.signals import Channels
from barnabas.connect.connectors.debezium.transactions import Transactions
from barnabas.connect.connectors.postgres_cdc import catalog, pgoutput
from barnabas.connect.connectors.postgres_cdc.capture import SOURCE, Table
from barnabas.connect.connectors.postgres_cdc.capturing import Capturing
from barnabas.connect.connectors.postgres_cdc.chunks import Chunks
from barnabas.connect.connectors.postgres_cdc.columns import columns_of, columns_of_relation
from barnabas.connect.connectors.postgres_cdc.messages import message_records
from barnabas.connect.connectors.postgres_cdc.position import Place, Resume
from barnabas.connect.connectors.postgres_cdc.replication import ReplicationStream
from barnabas.connect.connectors.postgres_cdc.snapshot import Snapshot
from barnabas.connect.data import Records
from barnabas.connect.plugins import ConnectError, Positions, RetriableError, SourceContext, SourceTask

log = logging.getLogger(__name__)


class PostgresTask(SourceTask):
    def start(self, context: SourceContext) -> None:
        self.context = context
        self.settings = context.settings
        self.prefix = context.settings.text("topic.prefix")
        self.partition = {"server": self.prefix}
        self.wanted = catalog.Wanted(context.settings)
        self._capturing = Capturing(context.settings, self.wanted, context.task)
        self._messages = Lists.of(context.settings, "message.prefix")
        self._channels: Channels | None = None
        self._skipped = set(context.settings.entries("skipped.operations"))
        self.conninfo = catalog.conninfo(context.settings)
        self.sql: Any = None
        self._texts: Any = None
        self._stream: ReplicationStream | None = None
        self._snapshot: Iterator[tuple[Records, Place]] | None = None
        self._was_always = False
        [offset] = context.offsets.read([self.partition])
        self._place = Place.of(offset) if offset else None
        self._returned = self._place  # behind the last batch that `poll` has returned
        self._durable = self._confirmed = 0
        self._queue: deque[tuple[Records, Place]] = deque()
        self._run = Run(context.settings)
        self._next_beat_s = self._next_report_s = self._next_move_s = 0.0
        self._report_s = min(context.settings.integer("status.update.interval.ms") / 1000, 10)

    def poll(self) -> Records | None:
        import psycopg

        try:
            if self.sql is None:
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
        return records

    def _shown(self) -> str:
        text = self.settings.text
        where = f"{text('database.hostname')}:{self.settings.integer('database.port')}"
        return f"postgresql://{where}/{text('database.dbname')}, slot {text('slot.name')}"

    def commit(self, positions: Positions) -> None:
        for partition, offset in positions:
            if partition == self.partition:
                self._durable = max(self._durable, int(offset.get("lsn_commit", 0)))

    def stop(self) -> None:
        if self.settings.flag("slot.drop.on.stop") and self.sql is not None:
            if self._stream is not None:
                self._stream.close()
                self._stream = None
            catalog.drop_slot(self.sql, self.settings.text("slot.name"))
        self._close()
        if self._channels is not None:
            self._channels.close()

    # -- opening -----------------------------------------------------------------------------------

    def _open(self) -> None:
        import psycopg

        self.sql = psycopg.connect(self.conninfo, autocommit=True)
        self._tables: dict[int, Table | None] = {}
        self._relations: dict[int, pgoutput.Relation] = {}
        self._begin: pgoutput.Begin | None = None
        self._origin: pgoutput.Origin | None = None
        if self._channels is None:
            self._channels = Channels(self.settings)
        more = dict(self._place.more) if self._place is not None else {}
        self._chunks = Chunks(self, Incremental.of(more))
        self._transactions: Transactions | None = None
        if self.settings.flag("provide.transaction.metadata"):
            topic = topic_name(self.prefix, self.settings.text("topic.transaction"))
            self._transactions = Transactions(topic, more)
        mode = self.settings.text("snapshot.mode").lower()
        place = self._place
        if mode == "initial_only":  # without a slot: nothing would read it, and the server would keep its log
            if place is None or place.snapshot:
                self._begin_snapshot(catalog.end_of_log(self.sql))
            return
        catalog.ensure_identities(self.sql, self.settings)
        catalog.ensure_publication(self.sql, self.settings, self.wanted)
        name = self.settings.text("slot.name")
        may_begin = mode in ("always", "when_needed")
        slot_lsn, is_new = catalog.ensure_slot(self.sql, name, replaces_lost=may_begin)
        if place is not None and not place.snapshot and is_new and not may_begin:
            catalog.drop_slot(self.sql, name)
            raise ConnectError(
                f"the slot {name} is gone, so changes since LSN {place.commit} are lost: take"
                " snapshot.mode=when_needed, or reset the offsets of this connector"
            )
        if place is not None and not place.snapshot and not is_new and slot_lsn > place.commit:
            self._slot_is_ahead(name, slot_lsn, place)
        needed = (
            place is None or bool(place.snapshot) or is_new or (mode == "always" and not self._was_always)
        )
        if needed and mode not in ("no_data", "never"):
            self._was_always = True
            self._begin_snapshot(slot_lsn)
        elif place is None:
            self._returned = self._place = Place(slot_lsn, slot_lsn)

    def _begin_snapshot(self, lsn: int) -> None:
        self._returned = self._place = Place(lsn, lsn, snapshot="INITIAL")
        self._snapshot = Snapshot(self, lsn).given()

    def _slot_is_ahead(self, name: str, slot_lsn: int, place: Place) -> None:
        """Something else moved the slot: the connector confirms stored offsets only."""
        gap = f"{place.commit} to {slot_lsn}"
        text = f"the slot {name} is ahead of the offset: changes of LSN {gap} are lost"
        if self.settings.text("offset.mismatch.strategy").lower() == "trust_offset":
            raise ConnectError(f"{text}; take a new snapshot, or offset.mismatch.strategy=trust_slot")
        log.warning("%s: %s, unless nothing was captured there", self._shown(), text)

    @property
    def texts(self) -> Any:
        """A connection for rows of tables, as texts."""
        if self._texts is None:
            self._texts = catalog.text_connection(self.conninfo, autocommit=True)
        return self._texts

    def snapshot_again(self, state: Incremental) -> None:
        """Begin a snapshot of some tables between two transactions; the stream goes on behind it."""
        self._flush()
        if self._queue or self._stream is None:
            return
        self._stream.close()
        self._stream = None
        self._snapshot = Snapshot(self, 0).again(state)

    def set_place(self, place: Place) -> None:
        """A snapshot says where the stream goes on."""
        self._place = place

    def place(self) -> Place:
        """The place with the states of transactions and of an incremental snapshot."""
        assert self._place is not None
        more = self._chunks.state.offset + (self._transactions.offset if self._transactions else ())
        return replace(self._place, more=more)

    def _started(self) -> ReplicationStream:
        assert self._place is not None
        options = {"proto_version": "1", "publication_names": self.settings.text("publication.name")}
        if self.sql.info.server_version >= 140000:
            options["messages"] = "true"
        self._resume = Resume(self._place)
        return ReplicationStream(self.conninfo, self.settings.text("slot.name"), self._place.commit, options)

    # -- tables ------------------------------------------------------------------------------------

    def table(self, schema: str, name: str, relation: pgoutput.Relation | None = None) -> Table | None:
        """A table as it is now, or as the log had it; None if it is not captured."""
        if not self.wanted.table(schema, name):
            return None
        if relation is None:
            columns, keys = columns_of(self.sql, schema, name)
        else:
            columns, keys = columns_of_relation(self.sql, relation)
        return self._capturing.table(schema, name, columns, keys, is_streamed=relation is not None)

    def source(self, table: Table, time_us: int, lsn: int, xid: int | None, snapshot: str) -> dict[str, Any]:
        assert self._place is not None
        return {
            "version": __version__, "connector": "postgresql", "name": self.prefix, "ts_ms": time_us // 1000,
            "snapshot": snapshot, "db": self.settings.text("database.dbname"),
            "sequence": f'[{self._place.last_commit},"{lsn}"]', "ts_us": time_us, "ts_ns": time_us * 1000,
            "schema": table.schema, "table": table.name, "txId": xid, "lsn": lsn, "xmin": None,
            "origin": self._origin.name if self._origin else None,
            "origin_lsn": self._origin.lsn if self._origin else None,
        }  # fmt: skip

    # -- stream ------------------------------------------------------------------------------------

    def _read(self) -> tuple[Records, Place] | None:
        if self.settings.text("snapshot.mode").lower() == "initial_only":
            self.context.stopping.wait(self.context.poll_seconds)
            return None
        if self._stream is None:
            self._stream = self._started()
        until_s = time.monotonic() + self.context.poll_seconds
        while not self._queue and not self.context.stopping.is_set():
            self._report()
            self._obey()
            if self._stream is None or self._queue:
                break  # a blocking snapshot begins, or signals are stored
            frame = self._stream.read(0 if self._run else min(until_s - time.monotonic(), 0.2))
            if isinstance(frame, pgoutput.Frame):
                self._apply(frame)
            elif isinstance(frame, pgoutput.Keepalive):
                self._alive(frame)
            elif self._run:
                self._flush()
            else:
                self.ask_progress()
                if time.monotonic() >= until_s:
                    break
        return self._queue.popleft() if self._queue else None

    def ask_progress(self) -> None:
        """Ask the server how far the log was read, if the window of a chunk waits for that."""
        if self._chunks.state.chunk is not None and self._chunks.state.chunk.end is not None:
            self._report(now=True, wants_reply=True)

    def _obey(self) -> None:
        """Follow signals, and read the next chunk of an incremental snapshot."""
        assert self._channels is not None
        if signals := self._channels.read():
            for signal in signals:
                self._chunks.state.obey(signal)
            self._tell_place()
            return  # topics and files tell them once: the offset has them before more happens
        if self._begin is None:
            had_tables = bool(self._chunks.state.tables)
            self._chunks.step()
            if had_tables and not self._chunks.state.tables:
                self._tell_place()

    def _tell_place(self) -> None:
        self._flush()
        place = self.place()
        self._queue.append((moved((self.partition, place.offset)), place))

    def _apply(self, frame: pgoutput.Frame) -> None:
        message = pgoutput.decode(frame.payload)
        place = self._place
        assert place is not None
        if isinstance(message, pgoutput.Begin):
            self._begin, self._origin = message, None
            self._begun(message, frame.lsn)
        elif isinstance(message, pgoutput.Commit):
            begin, self._begin = self._begin, None
            self._resume.committed()
            self._end(message, frame.lsn, 0 if begin is None else begin.xid)
        elif isinstance(message, pgoutput.Relation):
            self._flush()
            self._relations[message.oid] = message
            self._tables[message.oid] = self.table(message.schema, message.table, message)
        elif isinstance(message, pgoutput.Origin):
            self._origin = message
        elif isinstance(message, pgoutput.LogicalMessage):
            self._message(message, frame.lsn)
        elif isinstance(message, pgoutput.RowChange | pgoutput.Truncate):
            begin = self._begin
            assert begin is not None, "changes are inside of transactions"
            was_sent = self._resume.was_sent(begin.xid, frame.lsn)
            if was_sent or place.has(begin.xid, begin.final_lsn):
                return
            if isinstance(message, pgoutput.RowChange) and self._is_signal(message):
                self._signal(message, frame, begin)
                return
            oids = message.oids if isinstance(message, pgoutput.Truncate) else (message.oid,)
            for oid in oids:
                self._change(oid, message, frame.lsn, begin, len(frame.payload))
            self._place = place.after_event(frame.lsn, begin.xid)

    def _begun(self, begin: pgoutput.Begin, lsn: int) -> None:
        """Tell the beginning of a transaction, unless the snapshot has it or it was told before."""
        place = self._place
        if self._transactions is None or (place is not None and place.has(begin.xid, begin.final_lsn)):
            return
        if self._transactions.begins(f"{begin.xid}:{lsn}"):
            self._flush()
            place = self.place()
            started = self._transactions.begin(begin.time_us // 1000, (self.partition, place.offset))
            self._queue.append((started, place))

    def _end(self, commit: pgoutput.Commit, lsn: int, xid: int) -> None:
        assert self._place is not None
        row = None
        if self._transactions is not None and self._transactions.id is not None:
            self._flush()
            row = self._transactions.end(commit.time_us // 1000, f"{xid}:{lsn}")
        self._place = self._place.after_commit(commit.end_lsn, commit.time_us)
        self._chunks.streamed.append(xid)
        if row is not None and self._transactions is not None:
            place = self.place()
            self._queue.append((self._transactions.ended(row, (self.partition, place.offset)), place))
        self._end_window(commit.end_lsn)

    def _end_window(self, lsn: int) -> None:
        """Send the rows of a chunk that was read without marks, when the stream is behind its query."""
        state = self._chunks.state
        if self._begin is not None or (name := state.ended(lsn)) is None or state.chunk is None:
            return
        table = self._chunks.table_of(state.chunk.table)
        self._flush()
        rows, place = self._chunks.closed(name), self.place()
        positions = [(self.partition, place.offset)]
        made = table.schemas.records(rows, time.time_ns(), positions) if rows else moved(positions[0])
        self._queue.append((made, place))

    def _is_signal(self, message: pgoutput.RowChange) -> bool:
        relation = self._relations.get(message.oid)
        return relation is not None and self._chunks.is_signal(relation.schema, relation.table)

    def _signal(self, message: pgoutput.RowChange, frame: pgoutput.Frame, begin: pgoutput.Begin) -> None:
        """A row of the signal table: a wish of a user, or the edge of a window."""
        assert self._place is not None
        lsn = frame.lsn
        if message.op == "c" and message.new is not None:
            chunk = self._chunks.state.chunk
            names = [each.name for each in self._relations[message.oid].columns]
            self._flush()
            rows = self._chunks.row(names, message.new)
            self._place = self._place.after_event(lsn, begin.xid)
            if rows and chunk is not None:
                table = self._chunks.table_of(chunk.table)
                place = self.place()
                made = table.schemas.records(rows, time.time_ns(), [(self.partition, place.offset)])
                self._queue.append((made, place))
        if self._tables.get(message.oid) is not None:
            self._change(message.oid, message, lsn, begin, len(frame.payload))
        self._place = self._place.after_event(lsn, begin.xid) if message.op != "c" else self._place

    def _message(self, message: pgoutput.LogicalMessage, lsn: int) -> None:
        """A logical decoding message, inside of a transaction or on its own."""
        assert self._place is not None
        begin = self._begin
        if "m" in self._skipped or not self._messages.wants(message.prefix):
            return
        if begin is not None and (
            self._resume.was_sent(begin.xid, lsn) or self._place.has(begin.xid, begin.final_lsn)
        ):
            return
        self._flush()
        block = None
        if begin is not None and self._transactions is not None:
            block = self._transactions.block("message", f"{begin.xid}:{lsn}")
        nowhere = Table("", "", TableSchemas("", (), (), SOURCE), {}, {})
        time_us = begin.time_us if begin is not None else time.time_ns() // 1000
        source = self.source(nowhere, time_us, lsn, begin.xid if begin is not None else None, "false")
        if begin is not None:
            self._place = self._place.after_event(lsn, begin.xid)
        else:
            self._place = replace(
                self._place, commit=max(self._place.commit, lsn + 1), event=lsn + 1, events=0
            )
        place = self.place()
        topic = topic_name(self.prefix, "message")
        made = message_records(topic, message, source, (self.partition, place.offset), block)
        self._queue.append((made, place))

    def _change(
        self,
        oid: int,
        message: pgoutput.RowChange | pgoutput.Truncate,
        lsn: int,
        begin: pgoutput.Begin,
        size: int,
    ) -> None:
        table = self._tables.get(oid)
        op = "t" if isinstance(message, pgoutput.Truncate) else message.op
        if table is None:
            return
        if not self._run.takes(table.schemas):
            self._flush()
        names = [each.name for each in self._relations[oid].columns]
        before = after = None
        if isinstance(message, pgoutput.RowChange):
            if message.old is not None:
                before = table.row(names, message.old, keys_only=message.old_is_key)
            if message.new is not None:
                old = None if message.old_is_key else message.old
                after = table.row(names, message.new, old)
        source = self.source(table, begin.time_us, lsn, begin.xid, "false")
        changes = [
            each
            for each in table.schemas.expanded(Change(op, before, after, source))
            if each.op not in self._skipped
        ]
        if not changes:
            return
        full = f"{table.schema}.{table.name}"
        for row in (before, after):
            if row is not None:
                self._chunks.state.touched(full, table.schemas.key_of(row))
        if self._transactions is not None:
            name = f"{begin.xid}:{lsn}"  # events of one transaction have ids of their own, as with Debezium
            changes = self._transactions.counted(f"{table.schema}.{table.name}", changes, name)
        self._run.add(table.schemas, changes, size)

    def _flush(self) -> None:
        """The changes so far as one batch. Its position is behind the last of them."""
        run = self._run
        if run.schemas is not None and self._place is not None:
            place = self.place()
            made = run.schemas.records(run.changes, time.time_ns(), [(self.partition, place.offset)])
            self._queue.append((made, place))
        run.clear()

    # -- feedback ----------------------------------------------------------------------------------

    def _alive(self, frame: pgoutput.Keepalive) -> None:
        """The server's place. If nothing of ours is under way, the offset goes there too, and the slot when
        that is stored: a quiet table keeps no log, and the slot is never ahead of the offset."""
        is_idle = not self._chunks.state.tables and self._begin is None and not self._run and not self._queue
        place = self._place
        if (
            is_idle
            and place is not None
            and frame.lsn > place.commit
            and (place.seen is None or frame.lsn > place.seen.lsn)
            and time.monotonic() >= self._next_move_s
        ):
            self._next_move_s = time.monotonic() + self._report_s
            self._place = place.after_quiet(frame.lsn)
            self._queue.append((moved((self.partition, self.place().offset)), self.place()))
        self._end_window(frame.lsn)
        self._report(now=frame.wants_reply)
        self._beat()

    def _report(self, *, now: bool = False, wants_reply: bool = False) -> None:
        """Tell the server what is durable, now and then: it ends connections that are silent."""
        if self._stream is None or not (now or time.monotonic() >= self._next_report_s):
            return
        self._next_report_s = time.monotonic() + self._report_s
        self._confirmed = max(self._confirmed, self._durable)
        self._stream.confirm(self._confirmed, wants_reply=wants_reply or not now)

    def _beat(self) -> None:
        interval_s = self.settings.integer("heartbeat.interval.ms") / 1000
        if (
            not interval_s
            or self._begin is not None
            or time.monotonic() < self._next_beat_s
            or self._place is None
        ):
            return
        self._flush()
        self._next_beat_s = time.monotonic() + interval_s
        if query := self.settings.text("heartbeat.action.query"):
            self.sql.execute(query)
        topic = topic_name(self.settings.text("topic.heartbeat.prefix"), self.prefix)
        place = self.place()
        beat = heartbeat(topic, self.prefix, (self.partition, place.offset))
        self._queue.append((beat, place))

    def _close(self) -> None:
        """Close connections. Changes that were not returned are read again."""
        if self._snapshot is not None:
            self._snapshot.close()  # type: ignore[attr-defined]  # a generator
        for each in (self._stream, self.sql, self._texts):
            if each is not None:
                each.close()
        self._queue.clear()
        self._run.clear()
        self._place = self._returned
        self._stream = self.sql = self._texts = self._snapshot = None
