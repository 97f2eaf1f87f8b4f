"""The sinks of Cassandra: records become rows, by mappings (DataStax) or by their schemas (Confluent).

Rows are written by primary key, so records that come again change nothing in the end. Statements of one
partition go in unlogged batches, batches side by side; `put` returns when all are written. A record that does
not fit is reported alone. Does not know: topics, converters.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cassandra import AuthenticationFailed, DriverException, InvalidRequest, Unauthorized, WriteFailure
from cassandra.cluster import Cluster, NoHostAvailable, Session
from cassandra.connection import ConnectionException
from cassandra.protocol import ConfigurationException, ErrorMessage, SyntaxException
from cassandra.query import BatchStatement, BatchType, BoundStatement

from barnabas.connect.config import ConfigDef, Settings
from barnabas.connect.connectors.cassandra.cassandra_settings import (
    Access,
    checked_rules,
    create_keyspace,
    mapped_access,
    mapped_definitions,
    table_access,
    table_definitions,
    table_options,
)
from barnabas.connect.connectors.cassandra.mapping import quoted
from barnabas.connect.connectors.cassandra.rows import Clock, TableRows
from barnabas.connect.connectors.cassandra.tables import TableRule, mapping_of, rules_of, shape_of, table_of
from barnabas.connect.connectors.stores.checks import errors_of
from barnabas.connect.connectors.stores.left_out import refuse
from barnabas.connect.connectors.stores.retries import Pauses, Retries
from barnabas.connect.data import DataError, Record, Records, Schema
from barnabas.connect.plugins import ConnectError, Connector, SinkContext, SinkTask

WRITE_FAILURES_MAX = 10  # tries, until records that nodes fail to write are taken for bad ones
DROPPED = re.compile(r"unconfigured table|does not exist|unknown keyspace", re.IGNORECASE)

Refused = list[tuple[int, Exception]]
Work = list[tuple[int, BoundStatement, Any]]  # the index of a record, its statement, what may share a batch


@dataclass(frozen=True, slots=True)
class Unit:
    """Statements that go in one request, and the records that they come from."""

    statements: tuple[BoundStatement, ...]
    indices: tuple[int, ...]

    def request(self) -> Any:
        if len(self.statements) == 1:
            return self.statements[0]
        batch = BatchStatement(BatchType.UNLOGGED, consistency_level=self.statements[0].consistency_level)
        for each in self.statements:
            batch.add(each)
        return batch


class CassandraSinkTask(SinkTask):
    """The part that both sinks share."""

    def start(self, context: SinkContext) -> None:
        super().start(context)
        settings = context.settings
        self._access = self.access_of(settings)
        self._retries = Retries(
            context, settings.integer("max.retries"), Pauses(settings.integer("retry.backoff.ms"))
        )
        self._clock = Clock()
        self._from_records = settings.text("barnabas.write.timestamps").lower() == "record"
        self._write_failures = 0  # in a row
        self._ignored = "NONE"
        self._concurrent, self._batch_size = 500, 32
        self._cluster: Cluster | None = None
        self._session: Session | None = None
        self._rows: dict[Any, TableRows] = {}

    def access_of(self, settings: Settings) -> Access:
        raise NotImplementedError

    def rows_of(self, session: Session, records: Records) -> list[TableRows]:
        """The tables that take these records."""
        raise NotImplementedError

    def put(self, records: Records) -> None:
        refused: Refused = []
        try:
            session = self._connected()
            tables = self.rows_of(session, records)
            work = self._bound(tables, records, refused)
            refused += self._execute(session, units(work, self._batch_size))
        except (AuthenticationFailed, Unauthorized) as error:
            raise ConnectError(f"Cassandra refuses the connector: {error}") from error
        except (InvalidRequest, SyntaxException, ConfigurationException) as error:
            raise ConnectError(f"Cassandra refuses a statement: {error}") from error
        except (DriverException, ErrorMessage, NoHostAvailable, ConnectionException, OSError) as error:
            self._write_failures += isinstance(error, WriteFailure)
            if is_denied(error):
                raise ConnectError(f"Cassandra refuses the connector: {error}") from error
            raise self._retries.failed(f"Cassandra cannot take records: {error}", error) from error
        except DataError as error:  # of the schemas: no record fits
            refused = [(index, error) for index in range(len(records))]
        self._retries.succeeded()
        self._write_failures = 0
        for index, why in sorted(dict(reversed(refused)).items()):
            self._failed(records, index, why)

    def _bound(self, tables: Sequence[TableRows], records: Records, refused: Refused) -> Work:
        work: Work = []
        for index, record in enumerate(records.rows()):
            try:
                made = [(each, self.statement_of(each, record)) for each in tables]
            except DataError as error:
                refused.append((index, error))
                continue
            for rows, statement in made:
                group = (rows.name, statement.routing_key) if rows.groups else None
                work.append((index, statement, group))
        return work

    def statement_of(self, rows: TableRows, record: Record) -> BoundStatement:
        return rows.bound(record)

    def _execute(self, session: Session, work: Iterable[Unit]) -> Refused:
        """Run requests side by side, and wait for all. Out: records that Cassandra refuses."""
        pending: deque[tuple[Unit, Any]] = deque()
        refused: Refused = []
        failure: Exception | None = None

        def finish() -> None:
            nonlocal failure
            unit, future = pending.popleft()
            try:
                future.result()
            except (InvalidRequest, WriteFailure) as error:
                may_pass = isinstance(error, WriteFailure) and self._write_failures < WRITE_FAILURES_MAX
                if may_pass or DROPPED.search(str(error)):  # the table, under the task
                    failure = failure or error
                elif len(unit.statements) == 1:
                    refused.append((unit.indices[0], ConnectError(f"Cassandra refuses the record: {error}")))
                else:
                    alone.extend(
                        Unit((statement,), (index,))
                        for statement, index in zip(unit.statements, unit.indices, strict=True)
                    )
            except Exception as error:
                failure = failure or error

        alone: list[Unit] = []  # of batches that are refused for one of their records
        for unit in work:
            if len(pending) >= self._concurrent:
                finish()
            if failure is not None:
                break
            pending.append((unit, session.execute_async(unit.request())))
        while pending:
            finish()
        if failure is not None:
            raise failure
        return refused + (self._execute(session, alone) if alone else [])

    def _connected(self) -> Session:
        if self._session is None:
            cluster = self._access.cluster()
            try:
                self._session = cluster.connect()
            except BaseException:
                cluster.shutdown()
                raise
            self._cluster = cluster
        return self._session

    def _keys_of(self, rule: TableRule) -> list[str]:
        """The primary key of a table. ConnectError if there is no such table."""
        assert self._cluster is not None
        space = self._cluster.metadata.keyspaces.get(rule.keyspace)
        table = None if space is None else space.tables.get(rule.table)
        if table is None:
            raise ConnectError(f"there is no table {rule.name} in Cassandra: create it")
        columns = [*rule.mapping.columns] if not rule.query else []
        if unknown := [each for each in columns if each not in table.columns]:
            raise ConnectError(
                f"the table {rule.name} has no column {unknown[0]}: it has {', '.join(table.columns)}"
            )
        return [each.name for each in table.primary_key]

    def _failed(self, records: Records, index: int, error: Exception) -> None:
        is_ignored = self._ignored == "ALL" or (
            self._ignored == "DRIVER" and not isinstance(error, DataError)
        )
        refuse(self.context, records, index, error, ignored_by="ignoreErrors" if is_ignored else None)

    def stop(self) -> None:
        if getattr(self, "_cluster", None) is not None:
            assert self._cluster is not None
            self._cluster.shutdown()


def is_denied(error: Exception) -> bool:
    causes = list(error.errors.values()) if isinstance(error, NoHostAvailable) else []
    return bool(causes) and all(isinstance(each, AuthenticationFailed) for each in causes)


def units(work: Work, batch_size: int) -> list[Unit]:
    """Statements of one partition together, in the order of their first ones."""
    found: list[list[tuple[int, BoundStatement]]] = []
    last: dict[Any, list[tuple[int, BoundStatement]]] = {}
    for index, statement, place in work:
        group = None if place is None else last.get(place)
        if group is None or len(group) >= batch_size:
            group = []
            found.append(group)
            last[place] = group
        group.append((index, statement))
    return [Unit(tuple(each for _, each in group), tuple(index for index, _ in group)) for group in found]


class MappedTask(CassandraSinkTask):
    """Rows by mappings of the settings."""

    def start(self, context: SinkContext) -> None:
        super().start(context)
        settings = context.settings
        self._concurrent = settings.integer("maxConcurrentRequests")
        self._batch_size = settings.integer("maxNumberOfRecordsInBatch")
        ignored = settings.text("ignoreErrors").upper()
        self._ignored = {"TRUE": "ALL", "FALSE": "NONE"}.get(ignored, ignored)
        self._rules = rules_of(settings.raw)

    def access_of(self, settings: Settings) -> Access:
        return mapped_access(settings)

    def rows_of(self, session: Session, records: Records) -> list[TableRows]:
        found: list[TableRows] = []
        for topic in records.topics.unique().to_pylist():
            if topic not in self._rules:
                raise ConnectError(f"topic.{topic}.<keyspace>.<table>.mapping is missing")
            for rule in self._rules[topic]:
                place = (topic, rule.name)
                if place not in self._rows:
                    self._rows[place] = TableRows(
                        session, rule, self._keys_of(rule), self._clock, from_records=self._from_records
                    )
                found.append(self._rows[place])
        return found


class TableTask(CassandraSinkTask):
    """A table for each topic, by the schemas of records."""

    def start(self, context: SinkContext) -> None:
        super().start(context)
        self._concurrent = context.settings.integer("max.concurrent.requests")
        self._has_keyspace = False
        self._shapes: dict[str, tuple[Schema | None, Schema | None, TableRows]] = {}

    def access_of(self, settings: Settings) -> Access:
        return table_access(settings)

    def rows_of(self, session: Session, records: Records) -> list[TableRows]:
        found = []
        for topic in records.topics.unique().to_pylist():
            key, value = records.keys.schema, records.values.schema
            known = self._shapes.get(topic)
            if known is not None and known[0] == key and (known[1] == value or value is None):
                found.append(known[2])
                continue
            rows = self._table(session, topic, key, value)
            if value is not None:
                self._shapes[topic] = (key, value, rows)
            found.append(rows)
        return found

    def _table(self, session: Session, topic: str, key: Schema | None, value: Schema | None) -> TableRows:
        settings = self.context.settings
        keyspace = settings.text("cassandra.keyspace")
        shape = shape_of(topic, key, value)
        ttl = settings.integer("cassandra.ttl")
        rule = TableRule(
            keyspace,
            table_of(topic),
            mapping_of(shape),
            consistency=settings.text("cassandra.consistency.level").upper(),
            ttl_s=ttl if ttl > 0 else -1,
            null_to_unset=False,
            deletes=settings.flag("cassandra.deletes.enabled"),
        )
        if not self._has_keyspace and settings.flag("cassandra.keyspace.create.enabled"):
            replicas = settings.integer("cassandra.keyspace.create.replication.factor")
            session.execute(create_keyspace(keyspace, replicas))
        self._has_keyspace = True
        if settings.flag("cassandra.table.manage.enabled"):
            assert self._cluster is not None
            space = self._cluster.metadata.keyspaces.get(keyspace)
            table = None if space is None else space.tables.get(rule.table)
            if table is None:
                session.execute(shape.create(rule.name, table_options(settings)))
            else:
                for name, kind in shape.others.items():
                    if name not in table.columns:
                        self._add_column(session, rule, name, kind)
        return TableRows(session, rule, self._keys_of(rule), self._clock, from_records=self._from_records)

    def _add_column(self, session: Session, rule: TableRule, name: str, kind: str) -> None:
        assert self._cluster is not None
        try:
            session.execute(f"ALTER TABLE {rule.name} ADD {quoted(name)} {kind}")
        except InvalidRequest:
            self._cluster.refresh_table_metadata(rule.keyspace, rule.table)
            if name not in self._cluster.metadata.keyspaces[rule.keyspace].tables[rule.table].columns:
                raise  # otherwise another task was faster

    def statement_of(self, rows: TableRows, record: Record) -> BoundStatement:
        return rows.bound_whole(record)


class MappedCassandraSinkConnector(Connector):
    """DataStax' names: mappings in the settings."""

    KIND = "sink"
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ("com.datastax.oss.kafka.sink.CassandraSinkConnector",)
    CONFIG: ClassVar[ConfigDef] = mapped_definitions()
    task = MappedTask

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        return errors_of(self.CONFIG, config, mapped_access, checked_rules)


class TableCassandraSinkConnector(Connector):
    """Confluent's names: tables by the schemas of records."""

    KIND = "sink"
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ("io.confluent.connect.cassandra.CassandraSinkConnector",)
    CONFIG: ClassVar[ConfigDef] = table_definitions()
    task = TableTask

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        return errors_of(self.CONFIG, config, table_access)
