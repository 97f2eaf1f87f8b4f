"""The JDBC sink: records become rows, batch by batch, in one transaction for each `put`.

Order is kept: a delete ends the batch of rows before it, and the other way round. Offsets are committed after
the database has committed. With `barnabas.offsets.table` they are part of that transaction: exactly once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.connectors.databases.catalogue import TableId
from barnabas.connect.connectors.jdbc.common_settings import dialect_from
from barnabas.connect.connectors.jdbc.sink_rows import RowPlan, column, create_table
from barnabas.connect.connectors.jdbc.sink_settings import CONFIG, sink_errors
from barnabas.connect.data import Record, Records, Schema
from barnabas.connect.plugins import SINK, ConnectError, Connector, RetriableError, SinkContext, SinkTask

log = logging.getLogger(__name__)
SCHEMALESS = (
    "the value has no schema, but the sink needs a struct with one: take a converter with schemas"
    " (JsonConverter with"
    " schemas.enable=true, or Avro, JSON Schema or Protobuf of a registry)"
)


class Run(NamedTuple):
    """Records of one topic that become the same statement."""

    plan: RowPlan
    table: TableId
    casts: Mapping[str, str]
    rows: Sequence[Record]
    is_delete: bool


class JdbcSinkTask(SinkTask):
    def start(self, context: SinkContext) -> None:
        self.context = context
        self._settings = context.settings
        self._dialect = dialect_from(context.settings)
        self._zone = ZoneInfo(context.settings.text("db.timezone"))
        self._connection: Any = None
        self._tables: dict[str, tuple[TableId, dict[str, str]]] = {}
        self._retries = context.settings.integer("max.retries")
        self._offsets = context.settings.text("barnabas.offsets.table")

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        """With an offsets table, go on where the database is."""
        if not self._offsets:
            return
        try:
            stored = self._stored_offsets()
        except self._dialect.errors as error:
            self._close()
            text = f"{self._dialect.address.shown}: {str(error).strip()}"
            if self._dialect.is_away(error):
                raise RetriableError(text) from error
            raise ConnectError(f"the table {self._offsets} cannot be read: {text}") from error
        known = {each: stored[each] for each in partitions if each in stored}
        if known:
            self.context.seek(known)

    def _stored_offsets(self) -> dict[TopicPartition, int]:
        name = self._dialect.quoted(self._offsets)
        connection = self._connected()
        text = self._dialect.KEY_TEXT if self._dialect.KEY_TEXT != "TEXT" else "VARCHAR(249)"
        self._dialect.execute(
            connection,
            f"CREATE TABLE IF NOT EXISTS {name} (connector {text} NOT NULL, topic {text} NOT NULL,"
            " part INTEGER NOT NULL, next_offset BIGINT NOT NULL, PRIMARY KEY (connector, topic, part))",
        )
        query = f"SELECT topic, part, next_offset FROM {name} WHERE connector = %s"
        found = self._dialect.fetch(connection, query, (self.context.connector,))
        connection.commit()
        return {TopicPartition(topic, part): offset for topic, part, offset in found}

    def put(self, records: Records) -> None:
        if not len(records):
            return
        rows = list(records.rows())
        try:
            connection = self._connected()
            runs = self._runs(connection, records, rows)
            try:
                self._write(connection, runs)
            except self._dialect.errors as error:
                if not self._dialect.is_data_error(error):
                    raise
                connection.rollback()
                self._one_by_one(connection, records, runs)
            self._store_offsets(connection, rows)
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

    def _one_by_one(self, connection: Any, records: Records, runs: Sequence[Run]) -> None:
        """One of the rows does not fit: write each for itself, and report those that do not. All of it is one
        transaction still, so that records that come again after a failure find nothing of themselves."""
        index = 0
        self._dialect.begin(connection)
        for run in runs:
            for record in run.rows:
                self._dialect.execute(connection, "SAVEPOINT one_row")
                try:
                    self._write(connection, [run._replace(rows=[record])])
                except self._dialect.errors as error:
                    if not self._dialect.is_data_error(error):
                        raise
                    self._dialect.execute(connection, "ROLLBACK TO SAVEPOINT one_row")
                    where = f"{record.topic}-{record.partition} offset {record.offset}"
                    failure = ConnectError(f"{where}: {str(error).strip()}")
                    self.context.errant(records, [index], failure)
                self._dialect.execute(connection, "RELEASE SAVEPOINT one_row")
                index += 1

    # -- rows --------------------------------------------------------------------------------------

    def _runs(self, connection: Any, records: Records, rows: Sequence[Record]) -> list[Run]:
        """Neighbours of one topic that are all rows or all deletes. Tables are looked up, created and changed
        here: some databases end a transaction with that, so it must not hold rows yet."""
        if records.values.schema is None and any(each.value is not None for each in rows):
            raise ConnectError(f"{rows[0].topic}: {SCHEMALESS}")
        found = []
        for topic, of_topic in groupby(rows, key=lambda each: each.topic or ""):
            for is_delete, run in groupby(of_topic, key=lambda each: each.value is None):
                found.append(self._run(connection, topic, records, list(run), is_delete=is_delete))
        connection.commit()
        return found

    def _run(
        self, connection: Any, topic: str, records: Records, rows: list[Record], *, is_delete: bool
    ) -> Run:
        if is_delete and not self._settings.flag("delete.enabled"):
            raise ConnectError(
                f"{topic}: the record at offset {rows[0].offset} has a null value: set"
                " delete.enabled=true with"
                " pk.mode=record_key, or filter tombstones"
            )
        plan = RowPlan.of(
            self._settings, topic, records.keys.schema, None if is_delete else records.values.schema
        )
        table, casts = self._table(connection, topic, plan, may_create=not is_delete)
        return Run(plan, table, casts, rows, is_delete)

    def _write(self, connection: Any, runs: Sequence[Run]) -> None:
        for plan, table, casts, rows, is_delete in runs:
            if is_delete:
                statement = self._dialect.delete(table, plan.keys, casts)
                values = [plan.key_values(each, self._zone) for each in rows]
            else:
                statement = self._statement(table, plan, casts)
                replaces = self._settings.flag("replace.null.with.default")
                values = [plan.values(each, self._zone, replaces=replaces) for each in rows]
                if self._settings.text("insert.mode").lower() == "update":
                    cut = len(plan.keys)
                    values = [[*each[cut:], *each[:cut]] for each in values]
            for batch in batches(values, self._settings.integer("batch.size") or len(values)):
                self._dialect.execute_many(connection, statement, batch)

    def _store_offsets(self, connection: Any, rows: Sequence[Record]) -> None:
        if not self._offsets:
            return
        ends = {(each.topic, each.partition): (each.offset or 0) + 1 for each in rows}
        table = TableId("", "", self._offsets)
        statement = self._dialect.upsert(table, ("connector", "topic", "part"), ("next_offset",), {})
        self._dialect.execute_many(
            connection, statement, [(self.context.connector, *where, end) for where, end in ends.items()]
        )

    def _statement(self, table: TableId, plan: RowPlan, casts: Mapping[str, str]) -> str:
        mode = self._settings.text("insert.mode").lower()
        if mode == "insert":
            return self._dialect.insert(table, [*plan.keys, *plan.others], casts)
        if mode == "update":
            return self._dialect.update(table, plan.keys, plan.others, casts)
        return self._dialect.upsert(table, plan.keys, plan.others, casts)

    # -- tables ------------------------------------------------------------------------------------

    def _table(
        self, connection: Any, topic: str, plan: RowPlan, *, may_create: bool
    ) -> tuple[TableId, dict[str, str]]:
        """The table of a topic, created or given more columns if settings allow that."""
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
        columns = self._dialect.columns(connection, found)
        known = {each.name for each in columns}
        missing = [each for each in plan.schemas if each not in known]
        if missing:
            self._evolve(connection, found, plan, missing)
            columns = self._dialect.columns(connection, found)
        self._tables[key] = (found, self._dialect.casts(columns))
        return self._tables[key]

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
