"""The JDBC sink: records become rows, batch by batch, in one transaction for each `put`.

Order is kept: a delete ends the batch of rows before it, and the other way round. Offsets are committed after
the database has committed. With `barnabas.offsets.table` they are part of that transaction: exactly once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.connectors.databases.catalogue import ColumnInfo, TableId
from barnabas.connect.connectors.jdbc.common_settings import dialect_from
from barnabas.connect.connectors.jdbc.sink_rows import Binds, RowPlan, column, create_table
from barnabas.connect.connectors.jdbc.sink_settings import CONFIG, sink_errors
from barnabas.connect.connectors.jdbc.stored_offsets import StoredOffsets
from barnabas.connect.data import Record, Records, Schema
from barnabas.connect.plugins import SINK, ConnectError, Connector, RetriableError, SinkContext, SinkTask

log = logging.getLogger(__name__)
SCHEMALESS = (
    "the value has no schema, but the sink needs a struct with one: take a converter with schemas"
    " (JsonConverter with"
    " schemas.enable=true, or Avro, JSON Schema or Protobuf of a registry)"
)


class Run(NamedTuple):
    """Records of one topic that become the same statement: their places in the batch, and their values."""

    plan: RowPlan
    table: TableId
    casts: Mapping[str, str]
    indices: Sequence[int]
    values: Sequence[Sequence[Any]]
    is_delete: bool

    def take(self, chosen: Sequence[int]) -> Run:
        """The run with some of its rows, by their places in the run."""
        return self._replace(
            indices=[self.indices[each] for each in chosen], values=[self.values[each] for each in chosen]
        )


class JdbcSinkTask(SinkTask):
    def start(self, context: SinkContext) -> None:
        self.context = context
        self._settings = context.settings
        self._dialect = dialect_from(context.settings)
        self._zone = ZoneInfo(context.settings.text("db.timezone"))
        self._connection: Any = None
        self._tables: dict[str, tuple[TableId, tuple[ColumnInfo, ...]]] = {}
        self._retries = context.settings.integer("max.retries")
        self._mode = context.settings.text("insert.mode").lower()
        table = context.settings.text("barnabas.offsets.table")
        self._offsets = StoredOffsets(self._dialect, table, context.connector) if table else None

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        """Seek to the offsets in the database, if it has an offsets table."""
        if not self._offsets:
            return
        try:
            connection = self._connected()
            self._offsets.create(connection)
            stored = self._offsets.read(connection)
            connection.commit()
        except self._dialect.errors as error:
            self._close()
            text = f"{self._dialect.address.shown}: {str(error).strip()}"
            if self._dialect.is_away(error):
                raise RetriableError(text) from error
            raise ConnectError(f"the table {self._offsets.table} cannot be read: {text}") from error
        known = {each: stored[each] for each in partitions if each in stored}
        if known:
            self.context.seek(known)

    def put(self, records: Records) -> None:
        if not len(records):
            return
        rows = list(records.rows())
        try:
            connection = self._connected()
            runs = self._runs(connection, records, rows)
            try:
                ends = self._begin(connection, rows)
                self._write(connection, self._new(runs, rows, ends))
            except self._dialect.errors as error:
                if not self._dialect.is_data_error(error):
                    raise
                connection.rollback()
                ends = self._begin(connection, rows)
                self._one_by_one(connection, records, rows, self._new(runs, rows, ends))
            self._store_offsets(connection, rows, ends)
            connection.commit()
            self._retries = self._settings.integer("max.retries")
        except self._dialect.errors as error:
            self._close()
            text = f"{self._dialect.address.shown}: {str(error).strip()}"
            if self._retries <= 0:
                raise ConnectError(f"writing failed after all retries: {text}") from error
            self._retries -= 1
            self.context.retry_after_ms(self._settings.integer("retry.backoff.ms"))
            raise RetriableError(text) from error
        except ConnectError:
            self._close()
            raise

    def _begin(self, connection: Any, rows: Sequence[Record]) -> dict[TopicPartition, int]:
        """Begin a transaction. With an offsets table its rows are locked; out: the next offsets in it."""
        self._dialect.begin(connection)
        if self._offsets is None:
            return {}
        return self._offsets.locked(connection, {place_of(each) for each in rows})

    def _new(
        self, runs: Sequence[Run], rows: Sequence[Record], ends: Mapping[TopicPartition, int]
    ) -> list[Run]:
        """The runs without records that the database has already: another task has written them."""
        if not any((each.offset or 0) < ends.get(place_of(each), 0) for each in rows):
            return list(runs)
        kept = []
        for run in runs:
            of_run = [rows[index] for index in run.indices]
            fresh = [
                place
                for place, each in enumerate(of_run)
                if (each.offset or 0) >= ends.get(place_of(each), 0)
            ]
            kept.append(run.take(fresh))
        log.warning(
            "task %s-%d leaves out %d records that the database has already, by the offsets in %s",
            self.context.connector, self.context.task,
            sum(len(run.indices) for run in runs) - sum(len(run.indices) for run in kept),
            self._offsets.table if self._offsets is not None else "",
        )  # fmt: skip
        return [run for run in kept if run.indices]

    def _one_by_one(
        self, connection: Any, records: Records, rows: Sequence[Record], runs: Sequence[Run]
    ) -> None:
        """One of the rows does not fit: write each for itself, and report those that do not. All of it is one
        transaction still, so that records that come again after a failure find nothing of themselves."""
        for run in runs:
            for place, index in enumerate(run.indices):
                self._dialect.execute(connection, "SAVEPOINT one_row")
                try:
                    self._write(connection, [run.take([place])])
                except self._dialect.errors as error:
                    if not self._dialect.is_data_error(error):
                        raise
                    self._dialect.execute(connection, "ROLLBACK TO SAVEPOINT one_row")
                    self._refuse(records, rows, [index], str(error).strip())
                self._dialect.execute(connection, "RELEASE SAVEPOINT one_row")

    def _refuse(self, records: Records, rows: Sequence[Record], indices: Sequence[int], text: str) -> None:
        """Records that are no rows: `errors.tolerance` decides about them."""
        for index in indices:
            one = rows[index]
            failure = ConnectError(f"{one.topic}-{one.partition} offset {one.offset}: {text}")
            self.context.errant(records, [index], failure)

    # -- rows --------------------------------------------------------------------------------------

    def _runs(self, connection: Any, records: Records, rows: Sequence[Record]) -> list[Run]:
        """Neighbours of one topic that are all rows or all deletes. Tables are looked up, created and changed
        here: some databases end a transaction with that, so it must not hold rows yet."""
        found = []
        for topic, of_topic in groupby(range(len(rows)), key=lambda each: rows[each].topic or ""):
            for is_delete, run in groupby(of_topic, key=lambda each: rows[each].value is None):
                made = self._run(connection, topic, records, rows, list(run), is_delete=is_delete)
                found += [made] if made is not None and made.indices else []
        connection.commit()
        return found

    def _run(
        self,
        connection: Any,
        topic: str,
        records: Records,
        rows: Sequence[Record],
        indices: list[int],
        *,
        is_delete: bool,
    ) -> Run | None:
        """The statement of these records; None if none of them is a row."""
        try:
            plan = self._plan(topic, records, is_delete=is_delete)
        except ConnectError as error:
            self._refuse(records, rows, indices, str(error))
            return None
        kept, values = [], []
        table, columns = self._table(connection, topic, plan, may_create=not is_delete)
        binds = {
            each.name: partial(self._dialect.stored, native=each.native, zone=self._zone) for each in columns
        }
        for index in indices:
            try:
                values.append(self._values(plan, rows[index], binds, is_delete=is_delete))
                kept.append(index)
            except ConnectError as error:
                self._refuse(records, rows, [index], str(error))
        casts = self._dialect.casts(columns)
        return Run(plan, table, casts, kept, values, is_delete) if kept else None

    def _plan(self, topic: str, records: Records, *, is_delete: bool) -> RowPlan:
        if is_delete and not self._settings.flag("delete.enabled"):
            raise ConnectError(
                "the record has a null value: set delete.enabled=true with pk.mode=record_key, or filter"
                " tombstones"
            )
        if not is_delete and records.values.schema is None:
            raise ConnectError(SCHEMALESS)
        plan = RowPlan.of(
            self._settings, topic, records.keys.schema, None if is_delete else records.values.schema
        )
        if self._mode == "update" and not is_delete and not plan.others:
            raise ConnectError("insert.mode=update needs fields that are not in the key: there are none")
        return plan

    def _values(self, plan: RowPlan, record: Record, binds: Binds, *, is_delete: bool) -> list[Any]:
        if is_delete:
            return plan.key_values(record, binds)
        values = plan.values(record, binds, replaces=self._settings.flag("replace.null.with.default"))
        if self._mode == "update":
            cut = len(plan.keys)
            values = [*values[cut:], *values[:cut]]
        return values

    def _write(self, connection: Any, runs: Sequence[Run]) -> None:
        for run in runs:
            if run.is_delete:
                statement = self._dialect.delete(run.table, run.plan.keys, run.casts)
            else:
                statement = self._statement(run.table, run.plan, run.casts)
            for batch in batches(run.values, self._settings.integer("batch.size") or len(run.values)):
                self._dialect.execute_many(connection, statement, batch)

    def _store_offsets(
        self, connection: Any, rows: Sequence[Record], before: Mapping[TopicPartition, int]
    ) -> None:
        if self._offsets is None:
            return
        ends = dict(before)
        for each in rows:
            place = place_of(each)
            ends[place] = max(ends.get(place, 0), (each.offset or 0) + 1)
        self._offsets.store(connection, ends)

    def _statement(self, table: TableId, plan: RowPlan, casts: Mapping[str, str]) -> str:
        if self._mode == "insert":
            return self._dialect.insert(table, [*plan.keys, *plan.others], casts)
        if self._mode == "update":
            return self._dialect.update(table, plan.keys, plan.others, casts)
        return self._dialect.upsert(table, plan.keys, plan.others, casts)

    # -- tables ------------------------------------------------------------------------------------

    def _table(
        self, connection: Any, topic: str, plan: RowPlan, *, may_create: bool
    ) -> tuple[TableId, tuple[ColumnInfo, ...]]:
        """The table of a topic, created or given more columns if settings allow that, and the columns of the
        plan's fields, under the fields' names."""
        key = f"{topic}\0{sorted(plan.schemas)}"
        if key in self._tables:
            return self._tables[key]
        name = self._settings.text("table.name.format").replace("${topic}", topic)
        parts = name.split(".")
        found = self._dialect.find(connection, parts)
        if found is None:
            if not (self._settings.flag("auto.create") and may_create):
                raise ConnectError(f"the table {name} is missing: create it, or set auto.create=true")
            quoted = ".".join(map(self._dialect.quoted, parts))
            self._dialect.execute(connection, create_table(self._dialect, quoted, plan))
            connection.commit()
            found = self._dialect.find(connection, parts)
            assert found is not None, "the table was created"
        known = self._columns(connection, found)
        missing = [each for each in plan.schemas if self._dialect.folded(each) not in known]
        if missing:
            self._evolve(connection, found, plan, missing)
            known = self._columns(connection, found)
        if self._mode == "upsert" and (
            problem := self._dialect.refusal_of_upserts(connection, found, plan.schemas)
        ):
            raise ConnectError(problem)
        columns = tuple(replace(known[self._dialect.folded(each)], name=each) for each in plan.schemas)
        self._tables[key] = (found, columns)
        return self._tables[key]

    def _columns(self, connection: Any, table: TableId) -> dict[str, ColumnInfo]:
        """The columns of a table by the names that the database compares."""
        return {self._dialect.folded(each.name): each for each in self._dialect.columns(connection, table)}

    def _evolve(self, connection: Any, table: TableId, plan: RowPlan, missing: Sequence[str]) -> None:
        names = ", ".join(missing)
        if not self._settings.flag("auto.evolve"):
            raise ConnectError(f"the table {table} has no columns {names}: add them, or set auto.evolve=true")
        for name in missing:
            schema: Schema = plan.schemas[name]
            if not schema.optional and schema.default is None:
                raise ConnectError(
                    f"the table {table} cannot get the column {name}: the field is required and has"
                    " no default, so"
                    " rows that are there would have no value"
                )
            text = column(self._dialect, name, schema, is_key=False)
            self._dialect.execute(connection, f"ALTER TABLE {self._dialect.table_name(table)} ADD {text}")
        connection.commit()

    # -- connection --------------------------------------------------------------------------------

    def _connected(self) -> Any:
        if self._connection is None:
            self._connection = self._dialect.connect()
        return self._connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        self._tables.clear()
        if connection is not None:
            try:
                connection.close()
            except self._dialect.errors as error:
                log.debug("closing a connection: %s", error)

    def stop(self) -> None:
        self._close()


def place_of(record: Record) -> TopicPartition:
    return TopicPartition(record.topic or "", record.partition or 0)


def batches(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


class JdbcSinkConnector(Connector):
    KIND = SINK
    CONFIG = CONFIG
    JAVA_NAMES = ("io.confluent.connect.jdbc.JdbcSinkConnector", "io.aiven.connect.jdbc.JdbcSinkConnector")
    task = JdbcSinkTask

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        return sink_errors(config)

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Any, Any]]) -> bool:
        """Set the offsets that the database keeps, so that records are written again."""
        settings = self.CONFIG.parse(config)
        if not settings.text("barnabas.offsets.table"):
            return False
        dialect = dialect_from(settings)
        stored = StoredOffsets(dialect, settings.text("barnabas.offsets.table"), config.get("name", ""))
        try:
            changes = {
                TopicPartition(str(partition["kafka_topic"]), int(partition["kafka_partition"])): (
                    None if offset is None else int(offset["kafka_offset"])
                )
                for partition, offset in offsets
            }
        except (KeyError, TypeError, ValueError) as error:
            raise ConnectError(f"these are no offsets of a topic: {error}") from error
        try:
            with closing(dialect.connect()) as connection:
                stored.create(connection)
                stored.forget(connection, [each for each, offset in changes.items() if offset is None])
                stored.store(connection, {each: to for each, to in changes.items() if to is not None})
                connection.commit()
        except dialect.errors as error:
            raise ConnectError(f"the offsets in {stored.table} cannot be changed: {error}") from error
        return True
